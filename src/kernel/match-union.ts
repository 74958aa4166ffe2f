type Cases<Union extends { type: string }> = {
  [Type in Union['type']]: (value: Extract<Union, { type: Type }>) => unknown
}

/** Calls the case for the `type` of a discriminated union; the compiler demands a case for every `type`. */
export function match<Union extends { type: string }, const Each extends Cases<Union>>(
  value: Union,
  cases: Each,
): ReturnType<Each[Union['type']]> {
  // The case for the type of `value` takes a value of that type, which the compiler cannot correlate.
  const call: (value: never) => unknown = cases[value.type as Union['type']]
  return call(value as never) as ReturnType<Each[Union['type']]>
}
