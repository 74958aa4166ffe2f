import { type EvmChainRow, sameAddress, type Token } from '#kernel/chains.ts'
import { Fault } from '#kernel/fault.ts'
import type { JsonObject } from '#kernel/json.ts'
import { createEffect } from '#kernel/one-effect.ts'
import type { EndResult, StepResultOf, Steps } from '#kernel/task.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import { changesOf } from './changes.ts'
import type { SwapDeps } from './deps.ts'
import { errorOf } from './outcome.ts'
import { isFirstClaim, quoteUsed } from './quotes.ts'
import { changeView, resultOf } from './result.ts'
import { batchPlan, callsOf, type SwapStep, type SwapTask, type SwapTaskData, svmPlan } from './task-data.ts'
import { trackSwap } from './track.ts'

/** The batch of the origin chain, and the wait for what the provider settles on another one. */

type Result = StepResultOf<Partial<SwapTaskData>, SwapStep>
/** What the receipt of the batch proves. */
type SwapProof = { receipt: Receipt; inUnits: bigint; outUnits: bigint }

export function swapSteps(deps: SwapDeps): Steps<SwapTaskData, SwapStep> {
  const effects = { evm: batchEffect(deps), solana: svmEffect(deps) }
  return {
    sign: (task, context) => effects[task.data.steps.family].sign(task, context),
    confirm: (task, context) => effects[task.data.steps.family].confirm(task, context),
    track: (task, context) => trackSwap(deps, task, context),
  }
}

/** A quote is asked for once: what was accepted is signed, or nothing is. */
async function refusalOf(
  { db }: SwapDeps,
  data: SwapTaskData,
  now: Date,
): Promise<EndResult<never> | undefined> {
  if (now >= new Date(data.sign_until)) return notSigned(data, 'The quote expired before it was signed')
  if (data.quote_id === null || (await isFirstClaim(db, data.quote_id, data.claim ?? ''))) return undefined
  return notSigned(data, quoteUsed().message)
}

/** A deposit on Solana: only what left the wallet proves it. */
const svmEffect = (deps: SwapDeps) =>
  createEffect({
    steps: { sign: 'sign', confirm: 'confirm' },
    driver: deps.svm.driver<SwapTaskData, { signature: string }, SwapStep>({
      prove({ data }, { deltas, signature }) {
        const { address } = data.origin.token
        const units = deltas.find(({ token }) => token === address)?.amountUnits
        return units === -BigInt(data.amount_in) ? { signature } : undefined
      },
      onFinal: ({ userId, data }) => deps.changed(userId, data.origin.chain_id),
    }),
    plan: async ({ data }, { now }) => (await refusalOf(deps, data, now)) ?? svmPlan(data),
    settle: ({ data }, { signature }): Result => deposited(deps, data, signature),
  })

const batchEffect = (deps: SwapDeps) =>
  createEffect({
    steps: { sign: 'sign', confirm: 'confirm' },
    driver: deps.batches.driver<SwapTaskData, SwapProof, SwapStep>({
      prove: (task, receipt) => proofOf(deps, task, receipt),
      balanceChanges: (task, receipt) => balanceChanges(deps, task.data, receipt),
      onFinal: ({ userId, data }) => deps.changed(userId, data.origin.chain_id),
    }),
    plan: async ({ data }, { now }) => (await refusalOf(deps, data, now)) ?? batchPlan(data),
    settle: (task, proof) => settle(task, proof, deps),
  })

const notSigned = ({ provider }: SwapTaskData, message: string): EndResult<never> => ({
  end: 'failed',
  outcome: 'not_executed',
  error: errorOf({ code: 'expired', message, provider, reason: null, refundReason: null }),
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
    calls: callsOf(data),
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
        (from === null || sameAddress(row, from, origin.account)) &&
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

const deposited = ({ clock }: SwapDeps, data: SwapTaskData, txHash: string): Result => ({
  next: 'track',
  state: 'settling',
  spent: BigInt(data.amount_in),
  data: { polls: 0, deposit_tx: txHash, deposited_at: clock.now().toISOString() },
})

function settle({ data }: SwapTask, { receipt, inUnits, outUnits }: SwapProof, deps: SwapDeps): Result {
  if (data.settled_by === 'status') return deposited(deps, data, receipt.txHash)
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
