import type { InjectedFailure } from './injected-failures.ts'
import { type Fields, HttpError, numberField, rejectUnknownFields } from './router.ts'

const latencyMsMax = 600_000
const flags = ['html', 'drop_reply', 'refuse', 'silent'] as const
const effectFields = ['latency_ms', 'status', 'rpc_code', ...flags] as const

/** Parses one injected failure, and rejects one without an effect. */
export const readInjectedFailure = (fields: Fields): InjectedFailure => {
  rejectUnknownFields(fields, [...effectFields, 'methods', 'count', 'rate', 'seed'])
  const failure: InjectedFailure = {}
  if ('latency_ms' in fields) failure.latency_ms = numberField(fields, 'latency_ms', 0, latencyMsMax)
  if ('status' in fields) failure.status = Math.trunc(numberField(fields, 'status', 200, 599))
  if ('rpc_code' in fields) failure.rpc_code = Math.trunc(numberField(fields, 'rpc_code', -40_000, -1))
  if ('count' in fields) failure.count = Math.trunc(numberField(fields, 'count', 1, 1_000_000))
  if ('rate' in fields) failure.rate = numberField(fields, 'rate', 0, 1)
  if ('seed' in fields) failure.seed = Math.trunc(numberField(fields, 'seed', 0, 2 ** 32 - 1))
  for (const flag of flags) {
    if (!(flag in fields)) continue
    if (typeof fields[flag] !== 'boolean') throw new HttpError(400, `${flag} must be true or false.`)
    failure[flag] = fields[flag]
  }
  if ('methods' in fields) {
    const { methods } = fields
    if (
      !Array.isArray(methods) ||
      methods.length === 0 ||
      !methods.every((each) => typeof each === 'string')
    ) {
      throw new HttpError(400, 'methods must be a list of JSON-RPC method names.')
    }
    failure.methods = methods
  }
  if (!effectFields.some((field) => fields[field]))
    throw new HttpError(400, `A fault needs one of ${effectFields.join(', ')}.`)
  return failure
}
