const secrets = new Set([
  'authorization',
  'x-backend-key',
  'signature',
  'secret',
  'token',
  'password',
  'privateKey',
  'raw',
  'signed',
])
const depthMax = 8
const placeholder = '[redacted]'

const isPlain = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function redactNested(value: unknown, depth: number): unknown {
  if (Array.isArray(value)) {
    if (depth === depthMax) return placeholder
    const items = value.map((item) => redactNested(item, depth + 1))
    return items.some((item, at) => item !== value[at]) ? items : value
  }
  if (!isPlain(value)) return value
  return depth === depthMax ? placeholder : redact(value, depth + 1)
}

/** Returns the facts without secrets: the given object itself if nothing is redacted, which costs no copy. */
export function redact(facts: Record<string, unknown>, depth = 0): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined
  for (const name of Object.keys(facts)) {
    const value = facts[name]
    const replacement = secrets.has(name)
      ? placeholder
      : typeof value === 'object'
        ? redactNested(value, depth)
        : value
    if (replacement === value) continue
    copy ??= { ...facts }
    copy[name] = replacement
  }
  return copy ?? facts
}
