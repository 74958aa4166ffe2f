import type { TradingKeys } from '#engines/custody/trading-keys.ts'
import type { Fault } from '#kernel/contract/fault.ts'
import type { EffectUpdate, FailedResult, TaskView } from '#kernel/task/task.ts'
import type { NotExecutedOutcome } from './action-outcome.ts'

export const upstreamName = 'Hyperliquid'

export type Rejections = {
  codeOfRejection(message: string): string
  codeOfStatus(status: string): string
  isUnknownSigner(message: string): boolean
}

export const failed = (
  code: string,
  message: string,
  effects: EffectUpdate[] = [],
): FailedResult<Record<never, never>> => ({
  end: 'failed',
  outcome: 'not_executed',
  effects,
  error: { code, message, retryable: code === 'rate_limited', upstream: upstreamName },
})
export const failedBy = (fault: Fault) => failed(fault.code, fault.message)

export type RejectionDeps = {
  rejections: Rejections
  /** A key that the venue rejects as unknown is retired. */
  tradingKeys: Pick<TradingKeys, 'retired'>
}

export async function rejectedResult(
  { rejections, tradingKeys }: RejectionDeps,
  task: TaskView<{ agent?: string }>,
  { type, message, effects }: NotExecutedOutcome,
) {
  const { agent } = task.data
  if (agent !== undefined && rejections.isUnknownSigner(message))
    await tradingKeys.retired(task.userId, agent)
  const code = rejections.codeOfRejection(message)
  return failed(type === 'expired' && code === 'venue_rejected' ? 'expired' : code, message, effects)
}
