import { Fault, type FaultCode, faults } from '#kernel/contract/fault.ts'
import type { EndedTask } from '#kernel/contract/operation.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

/** Failures of the provider under the codes that these operations document. */
const codes: Readonly<Record<string, FaultCode>> = {
  upstream_timeout: 'unavailable',
  upstream_changed: 'unavailable',
  expired: 'unavailable',
  cancelled_by_user: 'conflict',
}

/** Returns the result of a task whose caller waits for it, or throws why there is none. */
export function answerOf({ status, result, error }: EndedTask): JsonObject {
  if (status === 'completed' && result) return result
  const { code, message } = { code: 'unavailable', message: 'The payment provider did not answer', ...error }
  const known =
    codes[String(code)] ?? (Object.hasOwn(faults, String(code)) ? (String(code) as FaultCode) : 'internal')
  const details = (error?.details ?? {}) as Record<string, unknown>
  throw new Fault(known, String(message).replace(/[.\s]+$/, ''), { extras: details })
}
