/** Returns the text that a key signs for the values of fields; those of a list have commas between them. */
export const signedValues = (fields: readonly string[], input: Readonly<Record<string, unknown>>): string =>
  fields.map((field) => [input[field]].flat().join(',')).join(':')
