"""Only batches need torch; every other module of the data side starts without it."""

import subprocess
import sys
from pathlib import Path

import pipeline.data


def test_no_stage_of_the_data_side_imports_torch():
    modules = {path.stem for path in Path(pipeline.data.__file__).parent.glob("*.py")}
    modules -= {"__init__", "counted_updates"}  # the latter is of batches
    modules = {name for name in modules if not name.endswith("batches")}
    imports = "; ".join(f"import pipeline.data.{name}" for name in sorted(modules))
    check = f"import sys; {imports}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True)
