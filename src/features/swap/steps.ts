import type { ExecutedBatch } from '#engines/evm-batch/batch-plan.ts'
import type { ProvenLanding } from '#engines/svm-transaction/transaction-plan.ts'
import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { chainNotServed } from '#kernel/contract/token-ref.ts'
import { balanceChange } from '#kernel/money/balance-changes.ts'
import { type EvmChainRow, sameAddress, type Token } from '#kernel/money/chains.ts'
import { createEffect, notExecuted } from '#kernel/task/effect-steps.ts'
import type { FoundProof } from '#kernel/task/forgotten-execution.ts'
import type { EndResult, StepContext, StepResultOf } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { SwapDeps } from './deps.ts'
import { signatureMsMin } from './route/limits.ts'
import { isFirstClaim, quoteUsed } from './route/quote-store.ts'
import { storedCalls } from './route/stored-route.ts'
import { arrivalAction } from './route/swap-action.ts'
import { changesOf } from './settle/balance-changes.ts'
import { errorOf } from './settle/failure-reason.ts'
import { foundTerms } from './settle/forgotten-execution-terms.ts'
import { resultOf } from './settle/result.ts'
import { trackSwap } from './settle/track.ts'
import {
  batchPlan,
  callsOf,
  type SwapStep,
  type SwapStepNames,
  type SwapTask,
  type SwapTaskData,
  svmPlan,
} from './task-data.ts'

type Result<Names extends string> = StepResultOf<Partial<SwapTaskData>, Names>
type SwapProof = { receipt: Receipt; inUnits: bigint; outUnits: bigint }

export type NamedSwapSteps<Names extends string> = Record<
  SwapStep,
  (task: SwapTask, context: StepContext) => Promise<Result<Names>>
>

export function swapSteps<Names extends string>(
  deps: SwapDeps,
  names: SwapStepNames<Names>,
): NamedSwapSteps<Names> {
  const effects = { evm: batchEffect(deps, names), solana: svmEffect(deps, names) }
  return {
    sign: (task, context) => effects[task.data.steps.family].sign(task, context),
    confirm: (task, context) => effects[task.data.steps.family].confirm(task, context),
    track: (task, context) => trackSwap(deps, task, { ...context, next: names.track }),
  }
}

/** Refuses to sign if the terms have changed. A swap signs its accepted quote or nothing; it asks for no second one. */
async function refusalOf(
  { db, policy }: SwapDeps,
  { data, userId }: SwapTask,
  now: Date,
): Promise<EndResult<never> | undefined> {
  const { provider, origin, destination } = data
  const expired = { code: 'expired', provider }
  if (now >= later(new Date(data.sign_until), -signatureMsMin))
    return notSigned({ ...expired, message: 'The quote expired before it was signed' })
  if (data.quote_id !== null && !(await isFirstClaim(db, data.quote_id, data.claim ?? '')))
    return notSigned({ ...expired, message: quoteUsed().message })
  const { chain_id: chainId, token, account: recipient } = destination
  if (chainId === origin.chain_id) return undefined
  // The signature asks the policy about the origin chain only, and the limits may have changed since the admission.
  const arrival = arrivalAction({ userId, chainId, token: token.address, recipient })
  return policy.check(arrival).then(
    () => undefined,
    (fault: unknown) => {
      if (!(fault instanceof Fault) || fault.retryable) throw fault
      return notSigned({ code: fault.code, message: fault.message, provider })
    },
  )
}

/** A deposit on Solana is proven only by the balances that left the wallet. */
const svmEffect = <Names extends string>(deps: SwapDeps, { sign, confirm, track }: SwapStepNames<Names>) =>
  createEffect({
    steps: { sign, confirm },
    driver: deps.svm.driver<SwapTaskData, { signature: string }, Names>({
      prove({ data }, { deltas, signature }) {
        const { address } = data.origin.token
        const units = deltas.find(({ token }) => token === address)?.amountUnits
        return units === -BigInt(data.amount_in) ? { signature } : undefined
      },
      found: (task, landing) => foundDeposit(deps, task, landing),
      onFinal: ({ userId, data }) => deps.changed(userId, data.origin.chain_id),
    }),
    plan: (task, { now }) => ({ ...svmPlan(task.data), refusal: () => refusalOf(deps, task, now) }),
    settle: ({ data }, { signature }) => deposited(deps, { data, txHash: signature, next: track }),
  })

/**
 * Finds a deposit that is older than its task, because the database was restored from a backup; it was made for another
 * quote and perhaps another amount.
 */
async function foundDeposit(
  { providers }: SwapDeps,
  { data }: SwapTask,
  { deltas, signature, slot }: ProvenLanding,
): Promise<FoundProof<SwapTaskData, { signature: string }>> {
  const { origin, destination } = data
  const left = -(deltas.find(({ token }) => token === origin.token.address)?.amountUnits ?? 0n)
  const provider = providers.find(({ name }) => name === data.provider)
  const requestId = left > 0n ? await provider?.requestOf(signature) : undefined
  if (requestId === undefined) return undefined
  const heads = { [destination.chain_id]: 0, [origin.chain_id]: Number(slot) }
  return {
    proof: { signature },
    data: { ...foundTerms(data, left), provider_request_id: requestId, heads, head_seconds: {} },
  }
}

const batchEffect = <Names extends string>(deps: SwapDeps, { sign, confirm, track }: SwapStepNames<Names>) =>
  createEffect({
    steps: { sign, confirm },
    driver: deps.batches.driver<SwapTaskData, SwapProof, Names>({
      prove: (task, receipt) => proofOf(deps, task, receipt),
      found: (task, batch) => foundProof(deps, task, batch),
      balanceChanges: (task, receipt) => balanceChanges(deps, task.data, receipt),
      onFinal: ({ userId, data }) => deps.changed(userId, data.origin.chain_id),
    }),
    plan: (task, { now }) => ({ ...batchPlan(task.data), refusal: () => refusalOf(deps, task, now) }),
    settle: (task, proof) => settle(deps, task, { ...proof, next: track }),
  })

type NotSigned = { code: string; message: string; provider: string }

const notSigned = (reason: NotSigned): EndResult<never> =>
  notExecuted(errorOf({ ...reason, reason: null, refundReason: null }))

const rowOf = ({ evmOf }: SwapDeps, chainId: string): EvmChainRow => {
  const chain = evmOf(chainId)
  if (!chain) throw chainNotServed(chainId)
  return chain.row
}

function changes(deps: SwapDeps, data: SwapTaskData, receipt: Receipt): Map<string, bigint> {
  const { chain_id, account } = data.origin
  const row = rowOf(deps, chain_id)
  return changesOf(row, {
    account,
    calls: callsOf(data),
    transfers: deps.evmOf(chain_id)!.transfers(receipt),
    wraps: row.swaps ? deps.calls.wrapsOf(receipt.logs, row.swaps) : [],
  })
}

/**
 * Proves a batch that is older than its task, because the database was restored from a backup. It was signed for
 * another quote and perhaps another amount: its events show what was sold, and the provider knows the request of a
 * deposit.
 */
async function foundProof(
  deps: SwapDeps,
  { data }: SwapTask,
  { receipt, calls }: ExecutedBatch,
): Promise<FoundProof<SwapTaskData, SwapProof>> {
  if (data.steps.family !== 'evm') return undefined
  const signed: SwapTaskData = { ...data, steps: { ...data.steps, calls: storedCalls(calls) } }
  const inUnits = soldUnits(deps, signed, receipt)
  if (inUnits <= 0n) return undefined
  const found = { ...foundTerms(data, inUnits), steps: signed.steps }
  if (data.settled_by === 'receipt') {
    const proof = proofOf(deps, { data: { ...signed, ...found } }, receipt)
    return proof && { proof, data: found }
  }
  const { origin, destination, target } = data
  const row = rowOf(deps, origin.chain_id)
  const deposit = deps.calls
    .bridgeDepositsOf(receipt.logs, target)
    .find(({ from }) => from === null || sameAddress(row, from, origin.account))
  const provider = deps.providers.find(({ name }) => name === data.provider)
  const requestId = deposit && (await provider?.requestOf(receipt.txHash))
  if (requestId === undefined) return undefined
  const named = { provider_request_id: requestId, deposit_id: deposit!.requestId }
  // A deposit that is older than its task may have been filled before the task too, so any block of the destination may
  // hold the fill.
  const heads = { [destination.chain_id]: 0, [origin.chain_id]: Number(receipt.block) }
  return { proof: { receipt, inUnits, outUnits: 0n }, data: { ...found, ...named, heads, head_seconds: {} } }
}

/** Proves the sold units and, on a single chain, the bought ones. The event of a deposit names its request. */
function proofOf(deps: SwapDeps, { data }: Pick<SwapTask, 'data'>, receipt: Receipt): SwapProof | undefined {
  const inUnits = soldUnits(deps, data, receipt)
  if (inUnits !== BigInt(data.amount_in)) return undefined
  if (data.settled_by === 'status')
    return isDeposited(deps, data, receipt) ? { receipt, inUnits, outUnits: 0n } : undefined
  const moved = changes(deps, data, receipt)
  const outUnits = moved.get(data.destination.token.address.toLowerCase()) ?? 0n
  return outUnits > 0n ? { receipt, inUnits, outUnits } : undefined
}

function soldUnits(deps: SwapDeps, data: SwapTaskData, receipt: Receipt): bigint {
  const moved = changes(deps, data, receipt)
  const sold = data.origin.token.address.toLowerCase()
  // Some tokens pay interest to the sender on each transfer, so the proof compares what left instead of the net.
  const returnedTokens = deps
    .evmOf(data.origin.chain_id)!
    .transfers(receipt)
    .filter(
      ({ token, to }) =>
        token.toLowerCase() === sold &&
        sameAddress(rowOf(deps, data.origin.chain_id), to, data.origin.account),
    )
    .reduce((sum, { amountUnits }) => sum + amountUnits, 0n)
  const returnedUnits = returnedTokens + returnedCoins(deps, data, receipt)
  return returnedUnits - (moved.get(sold) ?? 0n)
}

/** Returns the native coins that the contract did not use, if the swap sold native coins. */
function returnedCoins(deps: SwapDeps, { origin }: SwapTaskData, { logs }: Receipt): bigint {
  const row = rowOf(deps, origin.chain_id)
  if (!row.swaps || !sameAddress(row, origin.token.address, row.native.address)) return 0n
  return deps.calls
    .wrapsOf(logs, row.swaps)
    .filter(({ kind, account }) => kind === 'paid' && sameAddress(row, account, origin.account))
    .reduce((sum, { amountUnits }) => sum + amountUnits, 0n)
}

function isDeposited(deps: SwapDeps, data: SwapTaskData, { logs }: Receipt): boolean {
  const { origin, provider_request_id, deposit_id = provider_request_id, amount_in, target } = data
  const row = rowOf(deps, origin.chain_id)
  return deps.calls
    .bridgeDepositsOf(logs, target)
    .some(
      ({ from, taken, requestId }) =>
        (from === null || sameAddress(row, from, origin.account)) &&
        (taken === null ||
          ((taken.token === null ? origin.is_native : sameAddress(row, taken.token, origin.token.address)) &&
            taken.amountUnits === BigInt(amount_in))) &&
        requestId === deposit_id.toLowerCase(),
    )
}

function balanceChanges(deps: SwapDeps, data: SwapTaskData, receipt: Receipt): JsonObject[] {
  const row = rowOf(deps, data.origin.chain_id)
  const known: Token[] = [data.origin.token, data.destination.token, row.native, ...row.tokens]
  return [...changes(deps, data, receipt)].map(([address, units]) => {
    const token = known.find((each) => each.address.toLowerCase() === address)
    return balanceChange(row.id, token ?? { symbol: '', name: '', decimals: 0, address }, units)
  })
}

type Deposited<Names> = { data: SwapTaskData; txHash: string; next: Names }

const deposited = <Names extends string>(
  { clock }: SwapDeps,
  { data, txHash, next }: Deposited<Names>,
): Result<Names> => ({
  next,
  state: 'settling',
  spent: BigInt(data.amount_in),
  data: { polls: 0, deposit_tx: txHash, deposited_at: clock.now().toISOString() },
})

function settle<Names extends string>(
  deps: SwapDeps,
  { data }: SwapTask,
  { receipt, inUnits, outUnits, next }: SwapProof & { next: Names },
): Result<Names> {
  if (data.settled_by === 'status') return deposited(deps, { data, txHash: receipt.txHash, next })
  const { explorerUrl } = rowOf(deps, data.origin.chain_id)
  const result = {
    ...resultOf(data),
    amount_in: String(inUnits),
    amount_out: String(outUnits),
    tx_hash: receipt.txHash,
    explorer_url: `${explorerUrl}/tx/${receipt.txHash}`,
  }
  if (outUnits >= BigInt(data.amount_out_min))
    return { end: 'completed', outcome: 'executed', spent: inUnits, result }
  const message = 'Less than the minimum arrived'
  const reasons = { provider: data.provider, reason: null, refundReason: null }
  const error = errorOf({ code: 'slippage', message, ...reasons })
  return { end: 'failed', outcome: 'partial', spent: inUnits, error, result }
}
