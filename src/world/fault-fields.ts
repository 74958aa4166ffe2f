import { type Fields, numberField, onlyFields, Refusal } from './door.ts'
import type { Fault } from './faults.ts'

const latencyMsMax = 600_000
const flags = ['html', 'drop_reply', 'refuse', 'silent'] as const
const deeds = ['latency_ms', 'status', ...flags] as const

/** Reads one setting of the fault dial, and refuses a setting that would do nothing. */
export const faultFrom = (fields: Fields): Fault => {
  onlyFields(fields, [...deeds, 'methods', 'count', 'rate', 'seed'])
  const fault: Fault = {}
  if ('latency_ms' in fields) fault.latency_ms = numberField(fields, 'latency_ms', 0, latencyMsMax)
  if ('status' in fields) fault.status = Math.trunc(numberField(fields, 'status', 200, 599))
  if ('count' in fields) fault.count = Math.trunc(numberField(fields, 'count', 1, 1_000_000))
  if ('rate' in fields) fault.rate = numberField(fields, 'rate', 0, 1)
  if ('seed' in fields) fault.seed = Math.trunc(numberField(fields, 'seed', 0, 2 ** 32 - 1))
  for (const flag of flags) {
    if (!(flag in fields)) continue
    if (typeof fields[flag] !== 'boolean') throw new Refusal(400, `${flag} must be true or false.`)
    fault[flag] = fields[flag]
  }
  if ('methods' in fields) {
    const { methods } = fields
    if (
      !Array.isArray(methods) ||
      methods.length === 0 ||
      !methods.every((each) => typeof each === 'string')
    ) {
      throw new Refusal(400, 'methods must be a list of JSON-RPC method names.')
    }
    fault.methods = methods
  }
  if (!deeds.some((deed) => fields[deed])) throw new Refusal(400, `A fault needs one of ${deeds.join(', ')}.`)
  return fault
}
