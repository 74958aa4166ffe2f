export const taskStatuses = ['pending', 'running', 'completed', 'failed', 'cancelled'] as const
export type TaskStatus = (typeof taskStatuses)[number]
export const outcomes = ['executed', 'not_executed', 'partial', 'unknown'] as const
export type Outcome = (typeof outcomes)[number]
/** The `state` of a live task; once it has failed or was cancelled, `state` is the reason code instead. */
export const liveStates = [
  'accepted',
  'awaiting_approval',
  'quoting',
  'held',
  'signed',
  'submitted',
  'confirming',
  'waiting',
  'settling',
  'reconciling',
  'review',
] as const
export type LiveState = (typeof liveStates)[number]

const liveEffects: readonly string[] = ['prepared', 'sent', 'unknown']
/** Whether an effect was or may be executed: a cancel or the deadline does not end a task that has one. */
export const isExposed = ({ status }: { status: string }): boolean =>
  status !== 'dropped' && status !== 'rejected'
/** Whether an effect may still be executed, as far as is known. */
export const isLive = ({ status }: { status: string }): boolean => liveEffects.includes(status)
