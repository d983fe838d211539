"""Converts units and calculates with them, by the definitions of the package pint."""

import re
from dataclasses import dataclass
from typing import Any

import pint
from cofferdam import ToolFailure, tool

TEXT_MAX = 200
"""Maximum length of a unit or expression. The parser's time grows with it."""

POWER_MAX = 1000
"""Maximum product of all exponents of an expression. Integers have no largest value in Python:
`9**9**9` would take forever.
"""

DIGITS = 12
"""Significant digits of a result. Conversions get the last three digits of a double wrong."""

NAMES_MAX = 100
"""Maximum number of units in one list."""

_POWER = r"(?:\*\*|\^)\s*"
_EXPONENT = re.compile(_POWER + r"[-+]?(\d+(?:\.\d+)?)?")
_TOWER = re.compile(_POWER + r"[-+]?[\d.]+\s*" + _POWER)
_SUPERSCRIPT = re.compile("[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_PLAIN = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_WORDS = {"squared": "^2", "cubed": "^3"}

# Made at build time, because reading the definitions takes longer than a thousand conversions.
_registry: pint.UnitRegistry[float] = pint.UnitRegistry(autoconvert_offset_to_baseunit=True)

_registry.define("mile_per_gallon = mile / gallon = mpg")
_registry.define("mile_per_imperial_gallon = mile / imperial_gallon = mpg_uk")


@dataclass
class Amount:
    """A number with its unit."""

    value: float
    unit: str
    text: str


@tool(title="Convert units", read_only=True, idempotent=True, open_world=False, output_schema=True)
def convert(value: float, unit: str, to: str) -> Amount:
    """Converts a value from one unit to another: lengths, masses, times, temperatures, pressures, energies, data and many more.

    Units can be combined, as in `km/h`, `kg*m/s^2` or `L/100km`, and have prefixes, as in `GiB` or `microsecond`. Temperatures are
    `degC`, `degF` and `K`; differences of temperatures are `delta_degC` and `delta_degF`. Currencies are not units here.

    Args:
        value: The number to convert, such as 65.
        unit: The unit that it has, such as `mph` or `degF`.
        to: The unit that it should have, such as `km/h` or `degC`.
    """
    source, target = _unit(unit), _unit(to)
    try:
        if _is_plain(source) and _is_plain(target):
            return _amount(_registry.Quantity(value, source.units).to(target.units))
        # A unit that contains a number, such as `L/100km`, is a quantity.
        return _in_terms_of(value * source, target, to)
    except pint.DimensionalityError:
        inverse = 1 / source.dimensionality if source.dimensionality else None
        if inverse is not None and value and inverse == target.dimensionality:
            # Miles per gallon and liters per kilometer are reciprocal.
            return _in_terms_of(1 / (value * source), target, to)
        raise _mismatch(unit, source, to, target) from None
    except (ArithmeticError, pint.PintError) as error:
        raise ToolFailure(f"`{value} {unit}` cannot be converted to `{to}`: {error}", transient=False) from None


@tool(title="Calculate with units", read_only=True, idempotent=True, open_world=False, output_schema=True)
def calculate(expression: str, to: str | None = None) -> Amount:
    """Calculates with numbers that have units, such as `3 kg * 9.81 m/s^2` or `5 ft + 11 inch`.

    There are `+ - * / ^` and parentheses, and no functions. What is added must be of one kind: lengths to lengths.

    Args:
        expression: What to calculate, at most 200 characters.
        to: The unit of the result, such as `N`. Without it the result has the units that come out.
    """
    plain = _plain(expression)
    try:
        found = _registry.parse_expression(plain)
        quantity = found if isinstance(found, _registry.Quantity) else _registry.Quantity(found, "")
        return _amount(quantity) if to is None else _in_terms_of(quantity, _unit(to), to)
    except pint.UndefinedUnitError as error:
        raise _unknown(error) from None
    except pint.DimensionalityError as error:
        raise ToolFailure(
            f"`{expression}` does not fit together: {error}",
            suggestion="add and compare only amounts of one kind, and ask for a result of that kind",
            transient=False,
        ) from None
    except ToolFailure:
        raise
    # The parser raises many types of exceptions.
    except Exception as error:
        raise ToolFailure(
            f"`{expression}` cannot be calculated: {error.args[0] if error.args else 'it is not an expression'}",
            suggestion="write numbers, units, `+ - * / ^` and parentheses, such as `3 kg * 9.81 m/s^2`",
            transient=False,
        ) from None


@tool(title="List compatible units", read_only=True, idempotent=True, open_world=False)
def compatible_units(unit: str) -> dict[str, Any]:
    """Lists units that a unit can be converted to, to find the name of one.

    Args:
        unit: Any unit of the kind, such as `meter`.
    """
    parsed = _unit(unit)
    names = sorted(str(each) for each in _registry.get_compatible_units(parsed.units))
    return {"dimension": str(parsed.dimensionality), "units": names[:NAMES_MAX], "truncated": len(names) > NAMES_MAX}


def _plain(text: str) -> str:
    """Returns the text with one notation for powers.

    Raises:
        ToolFailure: If it is too long, or its exponents would make numbers that do not fit in
            memory.
    """
    if len(text) > TEXT_MAX:
        raise ToolFailure(
            f"the text has {len(text)} characters", suggestion=f"pass at most {TEXT_MAX}", transient=False
        )
    text = _SUPERSCRIPT.sub(lambda found: "^" + found.group().translate(_PLAIN), text.strip())
    text = re.sub(r"\s*\b(squared|cubed)\b", lambda found: _WORDS[found.group(1)], text)
    product = 1.0
    for digits in _EXPONENT.findall(text):
        if not digits:
            raise ToolFailure("an exponent is a plain number", suggestion="write `m^2`, for example", transient=False)
        product *= max(float(digits), 1.0)
    # `square`, `sq` and `cubic` precede their unit.
    product *= 3.0 ** len(re.findall(r"\b(?:square|sq|cubic)\b", text))
    if product > POWER_MAX or _TOWER.search(text):
        raise ToolFailure("the exponents are too large", suggestion="multiply them out yourself", transient=False)
    return text


def _unit(text: str) -> pint.Quantity[float]:
    """Returns a quantity of one unit."""
    plain = _plain(text)
    if plain[:1].isdigit():
        raise ToolFailure(f"`{text}` begins with a number", suggestion="pass the number as `value`", transient=False)
    if not plain:
        return _registry.Quantity(1.0, "")
    try:
        # Units with an offset cannot be parsed as a product.
        return _registry.Quantity(1.0, _registry.parse_units(plain))
    except pint.UndefinedUnitError as error:
        raise _unknown(error) from None
    except Exception:
        pass
    try:
        # Users write `L/100km` and mean `L/(100 km)`.
        return 1.0 * _registry.parse_expression(re.sub(r"/\s*(\d[\d.]*)\s*([^\W\d]+)", r"/(\1 \2)", plain))
    except Exception:
        raise ToolFailure(
            f"`{text}` is not a unit", suggestion="write units such as `km/h` or `kg*m/s^2`", transient=False
        ) from None


def _is_plain(unit: pint.Quantity[float]) -> bool:
    return unit.magnitude == 1.0


def _in_terms_of(quantity: pint.Quantity[float], target: pint.Quantity[float], to: str) -> Amount:
    if _is_plain(target):
        return _amount(quantity.to(target.units))
    value = _rounded((quantity.to_base_units() / target.to_base_units()).to("").magnitude)
    return Amount(value, to, f"{value:g} {to}")


def _amount(quantity: pint.Quantity[Any]) -> Amount:
    value = _rounded(quantity.magnitude)
    unit = f"{quantity.units:~P}" or str(quantity.units)
    return Amount(value, unit, f"{value:.{DIGITS}g} {unit}".replace(" dimensionless", ""))


def _rounded(value: float) -> float:
    rounded = float(f"{float(value):.{DIGITS}g}")
    if rounded - rounded != 0:
        raise ToolFailure("the result is too large for a number", transient=False)
    return rounded


def _unknown(error: pint.UndefinedUnitError) -> ToolFailure:
    names = error.unit_names if isinstance(error.unit_names, str) else ", ".join(error.unit_names)
    return ToolFailure(
        f"there is no unit `{names}`",
        suggestion="write its English name or its symbol; `compatible_units` lists those of a kind",
        transient=False,
    )


def _mismatch(unit: str, source: pint.Quantity[float], to: str, target: pint.Quantity[float]) -> ToolFailure:
    suggestion = "convert between units of one kind"
    if {unit, to} & {"C", "F"}:
        suggestion = "write `degC` and `degF` for temperatures; `C` is coulomb and `F` is farad"
    return ToolFailure(
        f"`{unit}` ({source.dimensionality}) cannot be converted to `{to}` ({target.dimensionality})",
        suggestion=suggestion,
        transient=False,
    )


# Fills the caches of the registry and triggers its late imports, which would fail in a call.
convert(1, "mph", "km/h")
convert(20, "degC", "degF")
calculate("5 ft + 11 inch", "m")
compatible_units("m")
