import type { BatchTrial } from '#engines/evm-batch/batch.ts'
import { later } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { conflict, Fault } from '#kernel/contract/fault.ts'
import { uuidv7 } from '#kernel/id.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import type { GasCharge } from '#kernel/task/gas-charge.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { attachedData, checkAttached } from './attached-tp-sl.ts'
import type { SwapInput, SwapView } from './contract.ts'
import type { SwapDeps } from './deps.ts'
import { quoteMs } from './route/limits.ts'
import { type PreparedSwap, prepareSwap } from './route/prepare-swap.ts'
import { saveQuote } from './route/quote-store.ts'
import { type QuotedFee, quoteView } from './route/quote-view.ts'
import { valueAtPrice } from './route/token-value.ts'
import { coveringBalance, walletOf } from './route/wallet-balance.ts'
import { batchPlan, type SwapTaskData, storedSteps, svmPlan } from './task-data.ts'

/** The gas of the account's own code and of a first delegation, in addition to what the provider names for its call. */
const accountGas = 250_000n

export const admitSwap = (deps: SwapDeps) =>
  createAdmission({
    policy: deps.policy,
    check: (input: SwapInput, { userId }) => prepareWithHooks(deps, input, userId),
    fund: (prepared, { executionId }) => fundSwap(deps, prepared, { executionId }),
    start(prepared, { data, spend, signOnAccept }) {
      const attached = attachedData(deps, prepared.attached, prepared.terms)
      const { quote_id: quoteId, claim } = data
      return {
        first: 'sign' as const,
        deadlineMs: prepared.terms.deadlineSeconds * 1_000,
        data: { ...data, ...attached.data },
        spend,
        ...(attached.orders && { orders: attached.orders }),
        // A swap of a stored quote and a swap with a loss above the default do not sign on accept. Of several tasks for
        // one quote, only a later step shows which one signs; and a signature on accept does not ask the policy about
        // the loss.
        ...(quoteId === null
          ? signOnAccept && prepared.action.acceptedLossBps === undefined && { signOnAccept }
          : {
              rows: [
                {
                  table: 'swap_quote_use',
                  rows: [{ quote_id: quoteId, claim, at: deps.clock.now().toISOString() }],
                },
              ],
            }),
      }
    },
  })

async function prepareWithHooks(deps: SwapDeps, input: SwapInput, userId: string) {
  const prepared = await prepareSwap(deps, input, { userId, asksPolicy: 'on_shortage' })
  return { ...prepared, attached: await checkAttached(deps, prepared) }
}

type Funding = {
  executionId?: string | undefined
  /** Whether the gas counts as that of an exit. */
  isExit?: boolean
}
export async function fundSwap(
  deps: SwapDeps,
  prepared: PreparedSwap,
  { executionId, isExit = false }: Funding = {},
) {
  const { terms, route } = prepared
  const { userId, origin } = terms
  const readBalance = () => coveringBalance(deps, terms)
  const heads = headsOf(deps, prepared)
  const data = taskData(deps, prepared)
  await (prepared.safe.family === 'evm' ? deps.batches : deps.svm).ready(origin.chain.id)
  const balance = await readBalance()
  const { gas, signOnAccept } = await trySwap(deps, { prepared, data, executionId, isExit }).catch(
    async (fault: unknown) => {
      // Another swap may have taken the balance since it was read; then the shortage is the reason to report.
      await readBalance()
      throw fault
    },
  )
  const fees = [...prepared.fees, await sponsorFee(deps, origin.chain, gas)]
  const policy = { decision: 'allow', rule: null, remaining_usd: await deps.remainingUsd(userId) }
  const quote = quoteOf(deps, prepared, { quoteId: data.quote_id, fees })
  const { chainId, address, status, verdict } = prepared.security
  const security = [{ chain_id: chainId, token_address: address, status, verdict }]
  return {
    security,
    signOnAccept,
    spend: {
      account: walletOf(userId, origin),
      amountUnits: route.amountInUnits,
      token: origin.token,
      seen: { ...balance, reread: readBalance },
      gas,
    },
    data: {
      ...data,
      ...(await heads),
      quote: quote as JsonObject,
      policy,
      security,
    } satisfies SwapTaskData as SwapTaskData,
    quote,
    policy,
  }
}

const quoteOf = (
  { clock }: SwapDeps,
  { route, terms, outMicros, quoteExpiresAt }: PreparedSwap,
  quoted: { quoteId: string | null; fees: QuotedFee[] },
) =>
  quoteView(route, {
    ...quoted,
    expiresAt: quoteExpiresAt ?? later(clock.now(), quoteMs),
    values: { inMicros: terms.valueInMicros, outMicros },
    tokens: { in: terms.origin.token, out: terms.destination.token },
  })

/**
 * Returns the task data of a swap that was executed before the database was restored from a backup; nothing is reserved
 * for it.
 */
export const soldData = (deps: SwapDeps, prepared: PreparedSwap): SwapTaskData => ({
  ...taskData(deps, prepared),
  quote: quoteOf(deps, prepared, { quoteId: null, fees: prepared.fees }),
})

type Heads = Required<Pick<SwapTaskData, 'heads' | 'head_seconds'>>
/** Reads the head of each chain before the swap: no earlier block can pay the swap, whatever other clocks say. */
async function headsOf(
  { evmOf, solana }: SwapDeps,
  { terms, route }: PreparedSwap,
): Promise<Heads | undefined> {
  if (route.settledBy !== 'status') return undefined
  const ids = [...new Set([terms.origin.chain.id, terms.destination.chain.id])]
  const read = async (id: string): Promise<{ number: bigint; timestampSeconds?: number } | undefined> =>
    id === solana?.row.id ? { number: await solana.slot() } : evmOf(id)?.head()
  const found: Heads = { heads: {}, head_seconds: {} }
  await Promise.all(
    ids.map(async (id) => {
      const head = await read(id).catch((fault: unknown) => {
        if (fault instanceof Fault) return undefined
        throw fault
      })
      if (!head) return
      found.heads[id] = Number(head.number)
      if (head.timestampSeconds !== undefined) found.head_seconds[id] = head.timestampSeconds
    }),
  )
  return found
}

type Tried = { gas: GasCharge; signOnAccept: BatchTrial['signOnAccept'] | undefined }

type SwapTrial = {
  prepared: PreparedSwap
  data: SwapTaskData
  executionId: string | undefined
  isExit: boolean
}
async function trySwap(deps: SwapDeps, { prepared, data, executionId, isExit }: SwapTrial): Promise<Tried> {
  const { userId, origin } = prepared.terms
  const asker = { userId, executionId }
  const wouldFail = (reason: string) => conflict(`The swap would fail: ${reason}`, reason)
  if (prepared.safe.family === 'solana') {
    const trial = await deps.svm.trial(asker, svmPlan({ ...data, ...(isExit && { is_exit: true }) }))
    if (!trial.ok) throw wouldFail(trial.reason)
    return { gas: trial.charge, signOnAccept: trial.signOnAccept }
  }
  const [{ simulation, signOnAccept }] = await Promise.all([
    deps.batches.trial(asker, batchPlan(data)),
    simulateSwap(deps, prepared),
  ])
  if (!simulation.ok) throw wouldFail(simulation.reason)
  const order = { userId, chainId: origin.chain.id, gas: simulation.gas, gasMin: BigInt(data.gas_min) }
  return { gas: await deps.batches.gasCharge({ ...order, fullExit: false, isExit }), signOnAccept }
}

const wordOf = (data: string | undefined): bigint | undefined =>
  data !== undefined && data.length >= 66 ? BigInt(data.slice(0, 66)) : undefined

/** Runs the calls on the state of the chain, and measures the output if it arrives on the same chain. */
async function simulateSwap({ evmOf, calls }: SwapDeps, prepared: PreparedSwap): Promise<void> {
  const { terms, route, safe } = prepared
  if (safe.family === 'solana') return
  const { chain, token, isNative } = terms.destination
  const evm = evmOf(terms.origin.chain.id)!
  const isDirect = route.settledBy === 'receipt'
  const balance: EvmCall[] = !isDirect
    ? []
    : [
        isNative
          ? calls.nativeBalanceOf(evm, terms.recipient)
          : calls.balanceOf(token.address, terms.recipient),
      ]
  const simulation = await evm.simulate(terms.account, [...balance, ...safe.calls, ...balance])
  if (!simulation.ok)
    throw new Fault('conflict', `The swap would fail: ${simulation.reason}`, {
      extras: { reason: simulation.reason },
    })
  if (!isDirect) return
  const [before, after] = [wordOf(simulation.returns[0]), wordOf(simulation.returns.at(-1))]
  if (before === undefined || after === undefined)
    throw new Fault('unavailable', `${chain.displayName} returned no balance for the simulation; try again`)
  if (after - before < route.amountOutMinUnits)
    throw new Fault('insufficient_liquidity', 'The simulated output is below the minimum of the quote', {
      extras: { simulated: String(after - before), minimum: String(route.amountOutMinUnits) },
    })
}

/** Returns the fee that the gateway pays for the user: the most gas that the sponsor pays for the transaction. */
async function sponsorFee(deps: SwapDeps, chain: Chain, { wei }: GasCharge): Promise<QuotedFee> {
  const token = chain.native
  const micros = await valueAtPrice(deps, { chain, token, isNative: true }, wei)
  return {
    type: 'sponsor',
    chainId: chain.id,
    token: token.address,
    amountUnits: wei,
    micros,
    paidBy: 'gateway',
  }
}

function taskData({ clock, random }: SwapDeps, prepared: PreparedSwap): SwapTaskData {
  const { terms, route, safe, usdMicros } = prepared
  const { origin, destination } = terms
  const { steps } = route
  const now = clock.now()
  const signUntil = later(now, terms.deadlineSeconds * 1_000)
  return {
    origin: {
      chain_id: origin.chain.id,
      token: origin.token,
      is_native: origin.isNative,
      account: terms.account,
    },
    destination: {
      chain_id: destination.chain.id,
      token: destination.token,
      is_native: destination.isNative,
      account: terms.recipient,
    },
    amount_in: String(route.amountInUnits),
    amount_out_min: String(route.amountOutMinUnits),
    steps: storedSteps(safe),
    target: safe.target,
    usd_micros: String(usdMicros),
    gas_min: String(steps.family === 'evm' && steps.gas !== null ? steps.gas + accountGas : 0n),
    sign_until: new Date(Math.min(signUntil.getTime(), route.expiresAt.getTime())).toISOString(),
    settled_by: route.settledBy,
    provider: route.provider,
    provider_request_id: route.providerRequestId,
    deposit_id: route.depositId,
    quote_id: terms.quoteId,
    claim: terms.quoteId === null ? null : uuidv7(now, random),
    quote: {},
    policy: {},
    security: [],
  }
}

/** Runs all checks of a swap and stores nothing but the quote. Returns undefined if the request is not a dry run. */
export async function dryRun(
  deps: SwapDeps,
  input: SwapInput,
  caller: Caller,
): Promise<SwapView | undefined> {
  if (!input.dryrun) return undefined
  const { userId } = caller
  const prepared = await prepareWithHooks(deps, input, userId)
  const isAsked = prepared.action.acceptedLossBps !== undefined
  await deps.policy.check({ ...prepared.action, principal: isAsked ? 'agent' : 'gateway' })
  const { spend, quote, policy, security } = await fundSwap(deps, prepared)
  const { gas } = spend
  // A gas charge above the whole budget could never be accepted.
  if (gas.budgetWei !== null && gas.wei > gas.budgetWei) throw gas.refuse(0n)
  const { terms, route, attached } = prepared
  const bound = prepared.quoteExpiresAt
    ? { quoteId: terms.quoteId, expiresAt: prepared.quoteExpiresAt }
    : await saveQuote(deps, terms, route)
  return {
    task_id: null,
    poll_url: null,
    idempotency_key: null,
    status: 'completed',
    message: 'A dry run: nothing was moved',
    kind: 'swap',
    outcome: 'not_executed',
    dryrun: true,
    transactions: [],
    balance_changes: [],
    quote: { ...quote, quote_id: bound.quoteId, expires_at: bound.expiresAt.toISOString() },
    platform_fee_amount: '0',
    security,
    hooks: attached.views,
    cancelled_hook_ids: attached.cancelledIds ?? [],
    policy: policy as SwapView['policy'] & object,
  }
}

/** The fields that the answer of a swap has in addition to those of its task. */
export const answerFields = ({
  quote,
  policy,
  security,
  hooks,
  cancelled_hook_ids: cancelledIds,
}: JsonObject): JsonObject =>
  quote === undefined
    ? {}
    : {
        dryrun: false,
        quote,
        policy: policy ?? null,
        security: security ?? [],
        platform_fee_amount: '0',
        hooks: hooks ?? [],
        cancelled_hook_ids: cancelledIds ?? [],
      }
