import type { Fault, FaultCode, InputLocation, Issue } from '#kernel/contract/fault.ts'

type LocatedIssue = Issue & { location: InputLocation }

export type FaultView = {
  status: number
  code: FaultCode
  message: string
  retryable: boolean
  extras: Record<string, unknown>
  /** The wrong fields of the input: at least one for the code `validation`, and none for any other code. */
  issues: LocatedIssue[]
}

export function faultView(fault: Fault): FaultView {
  const { status, code, message, retryable, extras } = fault
  return {
    status,
    code,
    message,
    retryable,
    extras: status === 503 ? { outcome: 'not_executed', ...extras } : extras,
    issues: code === 'validation' ? issuesOf(fault) : [],
  }
}

function issuesOf({ message, issues }: Fault): LocatedIssue[] {
  if (issues.length === 0) return [{ location: 'body', path: [], msg: message, type: 'value_error' }]
  return issues.map(({ location = 'body', ...issue }) => ({ location, ...issue }))
}
