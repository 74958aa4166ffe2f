import type { Destination, SwapAfterData, SwapAfterStep } from '#features/perp/withdraw-swap.ts'
import { invalid } from '#kernel/contract/fault.ts'
import { nativeSentinel } from '#kernel/money/chains.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { StepContext, StepResultOf, TaskView } from '#kernel/task/task.ts'
import { moneyOf } from './balances.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'

/** The swap of a withdrawal to another chain, or to the coin of a chain, after its cash was unwrapped. */

export type OnwardData = Omit<SwapAfterData, 'progress'> & {
  /** The token that the cash was unwrapped to. */
  received_token?: string
}
type OnwardTask = TaskView<OnwardData>
type Result = StepResultOf<Partial<OnwardData>, SwapAfterStep>
type Step = (task: OnwardTask, context: StepContext) => Promise<Result>

/** Where the cash is swapped to; undefined if it stays what it is unwrapped to. */
export function destinationOf(
  deps: PredmktDeps,
  input: Pick<PredmktInput<'withdraw'>, 'token' | 'destination_chain_id' | 'slippage_bps'>,
): Destination | undefined {
  const { token = 'usdc', destination_chain_id: chain, slippage_bps: slippage } = input
  const [first] = moneyOf(deps).wrappable
  const isHome = deps.tokenOnChain(chain, first!.token, 'destination_chain_id') !== undefined
  if (isHome && token !== 'coin') return undefined
  if (token === 'usdc_e' || token === 'pusd')
    throw invalid('token', 'unsupported_asset', 'USDC.e and pUSD arrive on Polygon alone')
  if (!deps.swaps)
    throw invalid(
      isHome ? 'token' : 'destination_chain_id',
      isHome ? 'unsupported_asset' : 'unsupported_chain',
      'No provider of swaps is configured: only USDC, USDC.e and pUSD on Polygon',
    )
  return {
    chain: chain ?? deps.chain.row.id,
    token: token === 'coin' ? nativeSentinel : 'USDC',
    ...(slippage !== undefined && { slippage_bps: slippage }),
  }
}

type Onward = { userId: string; destination: Destination; units: bigint }

/** Checks the swap before the withdrawal is accepted; it is quoted again once the cash has arrived. */
export async function prepareOnward(
  deps: PredmktDeps,
  { userId, destination, units }: Onward,
): Promise<PlannedAction> {
  const prepared = await deps.swaps!.prepare(
    {
      chain_id_in: deps.chain.row.id,
      token_in: moneyOf(deps).wrappable[0]!.token,
      chain_id_out: destination.chain,
      token_out: destination.token,
      amount: String(units),
      ...(destination.slippage_bps !== undefined && { slippage_bps: destination.slippage_bps }),
    },
    {
      userId,
      fields: { ...deps.swapLeg.swapFieldNames, amount: 'amount_usdc', token_out: 'token' },
      isAhead: true,
    },
  )
  return prepared.action
}

/** The swap has a hold of its own, because the first hold of the task was that of the cash at the venue. */
const swapHold = (taskId: string): string => `${taskId}:swap`

export function onwardSteps(deps: PredmktDeps): Record<SwapAfterStep, Step> {
  const { chain, swaps, batches } = deps
  const byToken = new Map(
    moneyOf(deps).wrappable.map(({ symbol, token }) => [
      token,
      deps.swapAfter.swapAfterWithdrawal({
        // No bridge follows, and the swap itself reads none.
        route: { chainId: chain.row.id, symbol, token, bridge: token },
        chain,
        swaps,
        batches,
        reserve: (tx, task, spend, at) =>
          deps.reserve(tx, task, { ...spend, holdKey: swapHold(task.id) }, at),
      }),
    ]),
  )
  const step =
    (name: SwapAfterStep): Step =>
    async (task, context) => {
      const own = (result: Result): Result => fromOwnHold(task, withoutPerpFields(result))
      const result = own((await byToken.get(task.data.received_token!)![name](task, context)) as Result)
      if (!('onWritesRefused' in result) || !result.onWritesRefused) return result
      const { onWritesRefused } = result
      return { ...result, onWritesRefused: (fault) => own(onWritesRefused(fault)) }
    }
  return { quote: step('quote'), swap: step('swap'), swapped: step('swapped'), track: step('track') }
}

function fromOwnHold({ id }: OnwardTask, result: Result): Result {
  if (!('spent' in result) || result.spent === undefined) return result
  const { spent, ...others } = result
  const posted = { move: 'post' as const, key: swapHold(id), amountUnits: spent }
  return { ...others, moves: [...(others.moves ?? []), posted] } as Result
}

function withoutPerpFields(result: Result): Result {
  if (!('result' in result) || !result.result) return result
  const { moved_from_spot_usd: _moved, ...shown } = result.result
  return { ...result, result: shown } as Result
}
