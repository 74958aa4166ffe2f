import { canonicalDecimal } from './decimal.ts'

/** Request errors that the venue answers with HTTP 422 before it checks the signature. */
export class MalformedError extends Error {}

/** Parses untrusted JSON into its canonical form, or throws. */
export type Rule = (value: unknown) => unknown

type Field = readonly [name: string, rule: Rule, presence?: 'optional']

const malformed: () => never = () => {
  throw new MalformedError('Failed to deserialize the JSON body into the target type')
}

const asRecord = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : malformed()

/** Keys are in the order of the fields and unknown keys are dropped, because the result is hashed. */
export const record =
  (...fields: Field[]): Rule =>
  (value) => {
    const from = asRecord(value)
    const out: Record<string, unknown> = {}
    for (const [name, rule, presence] of fields) {
      const item = from[name]
      if (item === undefined || (item === null && presence === 'optional')) {
        if (presence !== 'optional') malformed()
      } else out[name] = rule(item)
    }
    return out
  }

export const list =
  (rule: Rule): Rule =>
  (value) =>
    Array.isArray(value) ? value.map(rule) : malformed()

export const text: Rule = (value) => (typeof value === 'string' ? value : malformed())
export const flag: Rule = (value) => (typeof value === 'boolean' ? value : malformed())

export const natural: Rule = (value) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : malformed()

export const whole: Rule = (value) =>
  typeof value === 'number' && Number.isSafeInteger(value) ? value : malformed()

/** Upstream reads decimals from strings only, and prints them canonically before it hashes. */
export const decimal: Rule = (value) => {
  if (typeof value !== 'string') return malformed()
  const canonical = canonicalDecimal(value)
  return /^-?[0-9]+(\.[0-9]+)?$/.test(canonical) ? canonical : malformed()
}

const hex =
  (digits: number): Rule =>
  (value) =>
    typeof value === 'string' && new RegExp(`^0x[0-9a-fA-F]{${digits}}$`).test(value)
      ? value.toLowerCase()
      : malformed()

export const address = hex(40)
export const cloid = hex(32)

export const oneOf =
  (...allowed: (string | number | boolean)[]): Rule =>
  (value) =>
    allowed.includes(value as string) ? value : malformed()

/** The first alternative that matches. */
export const either =
  (...rules: Rule[]): Rule =>
  (value) => {
    for (const rule of rules) {
      try {
        return rule(value)
      } catch (error) {
        if (!(error instanceof MalformedError)) throw error
      }
    }
    return malformed()
  }

export const readType = (value: unknown): string => {
  const { type } = asRecord(value)
  return typeof type === 'string' ? type : malformed()
}

export const rejectMalformed: () => never = malformed
