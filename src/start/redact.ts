/** Field names whose values never belong into a log, at whatever depth they appear. */
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
const depthMost = 8
const shown = '[redacted]'

const isPlain = (value: unknown): value is Record<string, unknown> => {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function within(value: unknown, depth: number): unknown {
  if (Array.isArray(value)) {
    if (depth === depthMost) return shown
    const items = value.map((item) => within(item, depth + 1))
    return items.some((item, at) => item !== value[at]) ? items : value
  }
  if (!isPlain(value)) return value
  return depth === depthMost ? shown : redacted(value, depth + 1)
}

/** The facts themselves where nothing has to be hidden: that is nearly every line, and each request writes one. */
export function redacted(facts: Record<string, unknown>, depth = 0): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined
  for (const name of Object.keys(facts)) {
    const value = facts[name]
    const told = secrets.has(name) ? shown : typeof value === 'object' ? within(value, depth) : value
    if (told === value) continue
    copy ??= { ...facts }
    copy[name] = told
  }
  return copy ?? facts
}
