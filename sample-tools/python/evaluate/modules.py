"""The modules that a snippet can import.

A component contains only the modules that are imported while it is made. These are the modules of
the standard library that compute; modules that access the machine would not work.
"""

import array
import ast
import base64
import binascii
import bisect
import calendar
import cmath
import codecs
import collections
import collections.abc
import colorsys
import configparser
import contextlib
import copy
import csv
import dataclasses
import datetime
import decimal
import difflib
import enum
import fractions
import functools
import graphlib
import hashlib
import heapq
import hmac
import html
import html.parser
import inspect
import io
import ipaddress
import itertools
import json
import keyword
import locale
import math
import numbers
import operator
import pprint
import random
import re
import secrets
import sqlite3
import statistics
import string
import struct
import textwrap
import time
import timeit
import tokenize
import traceback
import types
import typing
import unicodedata
import unittest
import urllib.parse
import uuid
import xml.etree.ElementTree
import zlib
import zoneinfo

# Functions of these modules import them on first use, which would be too late.
import _strptime

NAMES = sorted(name for name, value in globals().items() if isinstance(value, types.ModuleType) and name[0] != "_")
"""The names that the result of a failed import lists."""
