import { Fault } from '#kernel/contract/fault.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { notExecuted, wouldFail } from '#kernel/task/effect-steps.ts'
import type { AccountState, Simulation } from '#upstreams/evm/evm.ts'
import type { BatchPlan } from './batch-plan.ts'

type Readings = { account: Pick<AccountState, 'hasOtherCode'>; simulation: Simulation }

/** Returns the result of a task whose batch would fail, or undefined if the batch would be executed. */
export function failureOf(
  chain: Pick<Chain, 'displayName'>,
  { minBlock = 0n }: Pick<BatchPlan, 'minBlock'>,
  { account, simulation }: Readings,
) {
  if (account.hasOtherCode) return wouldFail(chain, 'the account has the code of another contract')
  if (simulation.ok) return undefined
  if (simulation.block !== undefined && simulation.block < minBlock)
    throw new Fault('unavailable', `The ${chain.displayName} node is behind the chain; try again later`)
  return wouldFail(chain, simulation.reason)
}

export const costRose = ({ displayName }: Pick<Chain, 'displayName'>) =>
  notExecuted({
    code: 'expired',
    message: `The fee on ${displayName} rose to more than twice what was reserved for it; nothing was sent`,
    retryable: true,
    upstream: displayName,
  })
