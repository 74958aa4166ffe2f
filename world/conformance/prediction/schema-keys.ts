import assert from 'node:assert/strict'

/** What this file reads of a schema of the official client. */
type Definition = {
  type: string
  shape?: Record<string, unknown>
  in?: unknown
  out?: unknown
  innerType?: unknown
  element?: unknown
  options?: readonly unknown[]
  left?: unknown
  right?: unknown
  values?: readonly unknown[]
  valueType?: unknown
}
type Schema = { def: Definition; safeParse: (value: unknown) => { success: boolean; error?: Error } }

const definitionOf = (schema: unknown): Definition => (schema as Schema).def

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const fieldsMissing = (shape: Record<string, unknown>, value: unknown, path: string): string[] =>
  isRecord(value)
    ? Object.entries(shape).flatMap(([name, inner]) =>
        Object.hasOwn(value, name) ? missingKeys(inner, value[name], `${path}.${name}`) : [`${path}.${name}`],
      )
    : []

/** Names that a value lacks although the schema has them, as optional ones or not, at every depth. */
export const missingKeys = (schema: unknown, value: unknown, path = ''): string[] => {
  if (value === null || value === undefined) return []
  const {
    type,
    shape,
    in: input,
    out,
    innerType,
    element,
    options,
    left,
    right,
    valueType,
  } = definitionOf(schema)
  if (type === 'object') return fieldsMissing(shape ?? {}, value, path)
  if (type === 'array')
    return Array.isArray(value) ? value.flatMap((each) => missingKeys(element, each, `${path}[]`)) : []
  if (type === 'record')
    return isRecord(value)
      ? Object.values(value).flatMap((each) => missingKeys(valueType, each, `${path}{}`))
      : []
  if (type === 'pipe') return missingKeys(definitionOf(input).type === 'transform' ? out : input, value, path)
  if (type === 'intersection') return [...missingKeys(left, value, path), ...missingKeys(right, value, path)]
  if (type === 'union') {
    const fitting = options?.find((each) => (each as Schema).safeParse(value).success)
    return fitting === undefined ? [`${path} fits no form`] : missingKeys(fitting, value, path)
  }
  return innerType === undefined ? [] : missingKeys(innerType, value, path)
}

/** The official client takes the value, and no published name is missing but those `besides`. */
export const assertWhole = (
  schema: unknown,
  value: unknown,
  what: string,
  besides: ReadonlySet<string> = new Set(),
): void => {
  const { success, error } = (schema as Schema).safeParse(value)
  assert.ok(success, `${what}: ${error?.message}`)
  const missing = new Set(missingKeys(schema, value).filter((path) => !besides.has(path)))
  assert.deepEqual([...missing], [], what)
}
