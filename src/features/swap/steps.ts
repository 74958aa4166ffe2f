import { type EvmChainRow, sameAddress, type Token } from '#kernel/chains.ts'
import { Fault } from '#kernel/fault.ts'
import type { JsonObject } from '#kernel/json.ts'
import { createEffect } from '#kernel/one-effect.ts'
import type { EndResult, StepResultOf, Steps } from '#kernel/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import { changesOf } from './changes.ts'
import type { SwapDeps } from './deps.ts'
import { errorOf } from './outcome.ts'
import { isFirstClaim, quoteUsed, toCalls } from './quotes.ts'
import { changeView, resultOf } from './result.ts'
import { planOf, type SwapStep, type SwapTask, type SwapTaskData } from './task-data.ts'
import { trackSwap } from './track.ts'

/** The batch of the origin chain, and the wait for what the provider settles on another one. */

type Result = StepResultOf<Partial<SwapTaskData>, SwapStep>
/** What the receipt of the batch proves. */
type SwapProof = { receipt: Receipt; inUnits: bigint; outUnits: bigint }

export function swapSteps(deps: SwapDeps): Steps<SwapTaskData, SwapStep> {
  return { ...originEffect(deps), track: (task, context) => trackSwap(deps, task, context) }
}

const originEffect = (deps: SwapDeps) =>
  createEffect({
    steps: { sign: 'sign', confirm: 'confirm' },
    driver: deps.batches.driver<SwapTaskData, SwapProof, SwapStep>({
      prove: (task, receipt) => proofOf(deps, task, receipt),
      balanceChanges: (task, receipt) => balanceChanges(deps, task.data, receipt),
      onFinal: ({ userId, data }) => deps.changed(userId, data.origin.chain_id),
    }),
    async plan(task, { now }) {
      const { data } = task
      // A quote is asked for once: what was accepted is signed, or nothing is.
      if (now >= new Date(data.sign_until))
        return notSigned(data, 'expired', 'The quote expired before it was signed')
      if (data.quote_id !== null && !(await isFirstClaim(deps.db, data.quote_id, data.claim ?? '')))
        return notSigned(data, 'expired', quoteUsed().message)
      return planOf(data)
    },
    settle: (task, proof) => settle(task, proof, deps),
  })

const notSigned = ({ provider }: SwapTaskData, code: 'expired', message: string): EndResult<never> => ({
  end: 'failed',
  outcome: 'not_executed',
  error: errorOf({ code, message, provider, reason: null, refundReason: null }),
})

const rowOf = ({ evmOf }: SwapDeps, chainId: string): EvmChainRow => {
  const chain = evmOf(chainId)
  if (!chain) throw new Fault('unavailable', `Chain ${chainId} is not served`)
  return chain.row
}

function changes(deps: SwapDeps, data: SwapTaskData, receipt: Receipt): Map<string, bigint> {
  const { chain_id, account } = data.origin
  const row = rowOf(deps, chain_id)
  return changesOf(row, {
    account,
    calls: toCalls(data.calls),
    transfers: deps.evmOf(chain_id)!.transfers(receipt),
    wraps: row.swaps ? deps.calls.wrapsOf(receipt.logs, row.swaps.wrapped) : [],
  })
}

/** The events of the batch: what left the account, and on one chain also what arrived; a deposit names its request. */
function proofOf(deps: SwapDeps, { data }: SwapTask, receipt: Receipt): SwapProof | undefined {
  const moved = changes(deps, data, receipt)
  const inUnits = -(moved.get(data.origin.token.address.toLowerCase()) ?? 0n)
  if (inUnits !== BigInt(data.amount_in)) return undefined
  if (data.settled_by === 'status')
    return isDeposited(deps, data, receipt) ? { receipt, inUnits, outUnits: 0n } : undefined
  const outUnits = moved.get(data.destination.token.address.toLowerCase()) ?? 0n
  return outUnits > 0n ? { receipt, inUnits, outUnits } : undefined
}

function isDeposited(deps: SwapDeps, data: SwapTaskData, { logs }: Receipt): boolean {
  const { origin, provider_request_id, amount_in, target } = data
  const row = rowOf(deps, origin.chain_id)
  return deps.calls
    .bridgeDepositsOf(logs, target)
    .some(
      ({ from, token, amountUnits, requestId }) =>
        sameAddress(row, from, origin.account) &&
        (token === null ? origin.is_native : sameAddress(row, token, origin.token.address)) &&
        amountUnits === BigInt(amount_in) &&
        requestId === provider_request_id.toLowerCase(),
    )
}

function balanceChanges(deps: SwapDeps, data: SwapTaskData, receipt: Receipt): JsonObject[] {
  const row = rowOf(deps, data.origin.chain_id)
  const known: Token[] = [data.origin.token, data.destination.token, row.native, ...row.tokens]
  return [...changes(deps, data, receipt)].map(([address, units]) => {
    const token = known.find((each) => each.address.toLowerCase() === address)
    return changeView(row.id, token ?? { symbol: '', name: '', decimals: 0, address }, units)
  })
}

function settle({ data }: SwapTask, { receipt, inUnits, outUnits }: SwapProof, deps: SwapDeps): Result {
  if (data.settled_by === 'status')
    return {
      next: 'track',
      state: 'settling',
      spent: inUnits,
      data: { polls: 0, deposit_tx: receipt.txHash, deposited_at: deps.clock.now().toISOString() },
    }
  const { explorerUrl } = rowOf(deps, data.origin.chain_id)
  const isShort = outUnits < BigInt(data.amount_out_min)
  return {
    end: 'completed',
    outcome: isShort ? 'partial' : 'executed',
    spent: inUnits,
    result: {
      ...resultOf(data),
      amount_in: String(inUnits),
      amount_out: String(outUnits),
      tx_hash: receipt.txHash,
      explorer_url: `${explorerUrl}/tx/${receipt.txHash}`,
    },
    ...(isShort && { data: { note: 'less than the minimum arrived' } as Partial<SwapTaskData> }),
  }
}
