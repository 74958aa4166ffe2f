import type { StrategyPort } from '#features/schedules/strategy-port.ts'
import { factsOfStrategy } from '#features/strategies/strategy-facts.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Parts } from './section-parts.ts'
import { perpLimitsOf } from './settings.ts'

type StrategyPortParts = Pick<Parts, 'core' | 'custody' | 'venue'> & {
  /** Begins to close what a strategy has open; undefined while no strategy can have anything. */
  startExit?: StrategyPort['startExit']
}

/** Returns what schedules need of strategies; undefined where no venue is configured. */
export function createStrategyPort({
  core,
  custody,
  venue,
  startExit = async () => undefined,
}: StrategyPortParts): StrategyPort | undefined {
  if (!venue) return undefined
  const { minOrderUsd } = perpLimitsOf(core.config)
  return {
    factsOf: (input, at) => factsOfStrategy({ venue: venue.client, minOrderUsd }, input, at),
    async positionsOf(userId) {
      const account = await custody.evmAddressOf(userId)
      const { value } = await venue.views.account(account).catch(unanswered)
      return value?.positions.map(({ symbol }) => symbol)
    },
    startExit,
    announceQueued: core.taskEngine.announceQueued,
  }
}

/** A venue that does not answer leaves a part of the checklist open, and no view of a schedule fails for it. */
function unanswered(error: unknown): { value: undefined } {
  if (!(error instanceof Fault)) throw error
  return { value: undefined }
}
