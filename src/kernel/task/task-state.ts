/** The words in which a task says where it stands. */

export const taskStatuses = ['pending', 'running', 'completed', 'failed', 'cancelled'] as const
export type TaskStatus = (typeof taskStatuses)[number]
export const outcomes = ['executed', 'not_executed', 'partial', 'unknown'] as const
export type Outcome = (typeof outcomes)[number]
/** `state` of a live task; once failed or cancelled, `state` is the reason code instead. */
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
/** Whether an effect was executed or may be: a task that has one does not end for a cancel or its deadline. */
export const isExposed = ({ status }: { status: string }): boolean =>
  status !== 'dropped' && status !== 'rejected'
/** Whether an effect may still be executed, as far as is known. */
export const isLive = ({ status }: { status: string }): boolean => liveEffects.includes(status)
