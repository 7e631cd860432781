"""Types of the arrays that numbers stand in; their names end in a letter for each axis (`y_BN`)."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
