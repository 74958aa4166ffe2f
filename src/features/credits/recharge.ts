import type { Ledger } from '#durable/ledger/ledger.ts'
import { readFreeUnits } from '#engines/free-units/free-units.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/contract/fault.ts'
import { type InputOf, implement, type Operation, taskOf } from '#kernel/contract/operation.ts'
import { type Chain, sameAddress, toAssetId } from '#kernel/money/chains.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { toMicros } from '#kernel/money/money.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { actionTerms, noFurtherCost } from '#kernel/task/approval.ts'
import { notExecuted, oneEffect } from '#kernel/task/effect-steps.ts'
import type { Policy } from '#kernel/task/signer.ts'
import type { AccountRef, Steps } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import { purchasedCredits } from './buckets.ts'
import { rechargeContract } from './contract.ts'
import { type EvmPaymentDeps, evmDriver, evmPlan, evmTrial } from './evm-payment.ts'
import { agreedPrice, unitsWorth } from './native-amount.ts'
import { packs } from './packs.ts'
import { addCredited, canonicalHex, resolutionOf } from './payment-store.ts'
import {
  actionOf,
  type PaymentProof,
  type PaymentTrial,
  type RechargeTask,
  type RechargeTaskData,
  rechargeResult,
} from './recharge-data.ts'
import { type SvmPaymentDeps, svmDriver, svmPlan, svmTrial } from './svm-payment.ts'
import { rechargeKind, type Till } from './till.ts'

/** One payment in a chain's native coin buys credits, which are booked once the payment is final. */

export type RechargeDeps = EvmPaymentDeps &
  SvmPaymentDeps & {
    db: Queryable
    ledger: Pick<Ledger, 'balance'>
    tills: readonly Till[]
    chains: readonly Chain[]
    policy: Pick<Policy, 'check'>
    /** Two independent sources of the price of a native coin in dollars. */
    priceSources: readonly [PriceSource, PriceSource]
    chainInfo: (row: Chain) => ChainInfoView
    changed: (userId: string, chainId: string) => void
    clock: Clock
  }
/** Resolves to the price of the native coin in dollars; undefined if the source has no trusted price. */
export type PriceSource = (native: Chain['native']) => Promise<string | undefined>
type ChainInfoView = Omit<RechargeChainView, 'token' | 'confirmations'>
type RechargeChainView = {
  chain_id: string
  name: string
  display_name: string
  native_token: string
  is_evm: boolean
  supported_operations: ('swap' | 'bridge' | 'transfer')[]
  native_decimals: number
  explorer_url: string
  status: 'ok' | 'degraded' | 'down'
  gasless: boolean
  token: { symbol: string; address: string; decimals: number }
  confirmations: number
}

type RechargeInput = InputOf<typeof rechargeContract.entries.recharge>
type Pack = (typeof packs)[number]

/** How long an amount may be signed after its prices were read. */
const lockMs = 60_000

export function createRecharge(deps: RechargeDeps): Operation[] {
  const { tills, chainInfo } = deps
  return implement(rechargeContract, {
    async rechargeChains() {
      const chains = tills.map(({ chain: { row } }) => {
        const { symbol, address, decimals } = row.native
        return {
          ...chainInfo(row),
          token: { symbol, address, decimals },
          confirmations: row.confirmations,
        }
      })
      return { chains }
    },
    recharge: taskOf({
      admit: admitRecharge(deps),
      steps: rechargeSteps(deps),
      looksUp: true,
      everyAnswer: answerFields,
    }),
  })
}

/** Credits are pending until the task of their payment ends. */
const answerFields = ({ id, status, data }: { id: string; status: string; data: JsonObject }) => ({
  task_ids: [id],
  credits_pending: ['pending', 'running'].includes(status) ? Number(data.credits ?? 0) : 0,
})

function packOf({ pack_id: packId, amount_usd: amountUsd }: RechargeInput): Pack {
  if ((packId === undefined) === (amountUsd === undefined))
    throw exactlyOneOf('pack_id', 'amount_usd', { hasBoth: packId !== undefined })
  const pack = packs.find((each) =>
    packId === undefined ? toMicros(each.priceUsd) === toMicros(amountUsd!) : each.packId === packId,
  )
  if (pack) return pack
  const field = packId === undefined ? 'amount_usd' : 'pack_id'
  const possible = packs.map((each) => (packId === undefined ? each.priceUsd : each.packId))
  throw invalid(field, 'unknown_pack', `Input should be ${possible.join(', ')}: no other pack is sold`, {
    possible,
  })
}

function tillOf({ tills }: RechargeDeps, { chain_id, token_address: token }: RechargeInput): Till {
  const chainId = String(chain_id)
  const till = tills.find(({ chain: { row } }) => [row.id, row.name].includes(chainId.toLowerCase()))
  if (!till) {
    const possible = tills.map(({ chain }) => chain.row.id)
    const sentence = `Input should be ${possible.join(', ')}: credits are sold on no other chain`
    throw invalid('chain_id', 'unsupported_chain', sentence, { possible })
  }
  const { native } = till.chain.row
  const isNative = (text: string) =>
    text.toLowerCase() === native.symbol.toLowerCase() || sameAddress(till.chain.row, text, native.address)
  if (token !== undefined && token !== null && !isNative(token))
    throw invalid(
      'token_address',
      'unsupported_asset',
      `Input should be ${native.address}: only the native coin pays for credits`,
      { possible: [native.address] },
    )
  return till
}

const admitRecharge = (deps: RechargeDeps) =>
  createAdmission({
    policy: deps.policy,
    async check(input: RechargeInput, { userId }) {
      const [pack, till] = [packOf(input), tillOf(deps, input)]
      const { row } = till.chain
      const wallet: AccountRef = {
        owner: userId,
        asset: toAssetId(row, row.native.address),
        subAccount: 'wallet',
      }
      const terms = actionTerms(`Buy ${pack.credits} credits on ${row.displayName}`, {
        chain: row.displayName,
        token: row.native.symbol,
        recipient: till.address,
        cost: noFurtherCost,
      })
      return { action: { userId, ...actionOf(till, toMicros(pack.priceUsd)), terms }, pack, till, wallet }
    },
    fund: (request) => fundRecharge(deps, request),
    start({ pack, till, wallet }, { account, amountUnits, price, lockedUntil, seen, gas }) {
      const data: RechargeTaskData = {
        pack_id: pack.packId,
        credits: pack.credits,
        chain_id: till.chain.row.id,
        till: till.address,
        account,
        amount_units: String(amountUnits),
        native_price_usd: price,
        locked_until: lockedUntil.toISOString(),
      }
      const spend = { account: wallet, amountUnits, token: till.chain.row.native, seen, gas }
      // The call names the task, whose id is made on acceptance, so it is signed afterwards.
      return { first: 'sign', deadlineMs: lockMs, data, spend }
    },
  })

type RechargeRequest = { pack: Pack; till: Till; wallet: AccountRef }
type Funding<T extends Till> = Omit<RechargeRequest, 'till'> & { till: T; trial: PaymentTrial<T> }

const fundRecharge = (deps: RechargeDeps, { till, ...request }: RechargeRequest) =>
  till.family === 'evm'
    ? fundPayment(deps, { ...request, till, trial: evmTrial(deps) })
    : fundPayment(deps, { ...request, till, trial: svmTrial(deps) })

async function fundPayment<T extends Till>(deps: RechargeDeps, { pack, till, wallet, trial }: Funding<T>) {
  const { displayName, native } = till.chain.row
  const userId = wallet.owner
  const account = await trial.accountOf(userId)
  const pricedAt = deps.clock.now()
  const [price] = await Promise.all([trustedPrice(deps, till), trial.ready(till)])
  const amountUnits = unitsWorth(pack.priceUsd, price, native.decimals)
  if (amountUnits > till.maxUnits)
    throw new Fault('unavailable', `At the price of now a payment on ${displayName} exceeds its limit`)
  const coinsOf = () => trial.coinsOf(till, account)
  const readCoins = () => coinsCovering(deps, { native, wallet, coinsOf, amountUnits })
  const seen = await readCoins()
  const gas = await trial.chargeOf({ till, userId, account, amountUnits })
  const lockedUntil = later(pricedAt, lockMs)
  return { account, amountUnits, price, lockedUntil, seen: { ...seen, reread: readCoins }, gas }
}

/** Returns the price at which credits are sold; throws unless the two sources agree. */
async function trustedPrice({ priceSources }: RechargeDeps, { chain }: Till): Promise<string> {
  const { native } = chain.row
  const [one, other] = await Promise.all(
    priceSources.map((source) =>
      source(native).catch((fault: unknown) => {
        if (fault instanceof Fault) return undefined
        throw fault
      }),
    ),
  )
  const price = one === undefined || other === undefined ? undefined : agreedPrice(one, other)
  if (price !== undefined) return price
  throw new Fault('unavailable', `There is no price of ${native.symbol} now that two sources agree on`)
}

type CoinsRequest = {
  native: Chain['native']
  wallet: AccountRef
  coinsOf: () => Promise<bigint>
  amountUnits: bigint
}

async function coinsCovering(
  deps: RechargeDeps,
  { native, wallet, coinsOf, amountUnits: requiredUnits }: CoinsRequest,
): Promise<{ totalUnits: bigint; version: bigint }> {
  const { totalUnits, freeUnits, version } = await readFreeUnits(deps, {
    account: wallet,
    readTotal: coinsOf,
    requiredUnits,
  })
  if (freeUnits >= requiredUnits) return { totalUnits, version }
  throw insufficientBalance(native, { what: 'The payment', requiredUnits, availableUnits: freeUnits })
}

function rechargeSteps(deps: RechargeDeps): Steps<RechargeTaskData, 'sign' | 'confirm'> {
  const tillOn = (chainId: string) => deps.tills.find(({ chain }) => chain.row.id === chainId)
  const priceOf = ({ data }: RechargeTask) =>
    toMicros(packs.find(({ packId }) => packId === data.pack_id)?.priceUsd ?? '0')
  const refusalAt = (data: RechargeTaskData, now: Date) => async () =>
    now > new Date(data.locked_until) ? outdated : undefined
  const evmTillOn = (chainId: string) => {
    const till = tillOn(chainId)
    return till?.family === 'evm' ? till : undefined
  }
  const evmEffect = oneEffect({
    driver: evmDriver({ ...deps, tillOf: evmTillOn }),
    plan(task: RechargeTask, { now }) {
      const till = evmTillOn(task.data.chain_id)
      if (!till) throw notSold()
      return { ...evmPlan(deps, till, task, priceOf(task)), refusal: refusalAt(task.data, now) }
    },
    settle: (task, proof, { now }) => credited(deps, task, { proof, now }),
  })
  const svmEffect = oneEffect({
    driver: svmDriver(deps),
    plan(task: RechargeTask, { now }) {
      const till = tillOn(task.data.chain_id)
      if (till?.family !== 'solana') throw notSold()
      return { ...svmPlan(deps, till, task, priceOf(task)), refusal: refusalAt(task.data, now) }
    },
    settle: (task, proof, { now }) => credited(deps, task, { proof, now }),
  })
  const effectOf = ({ data }: RechargeTask) => (isEvmAddress(data.account) ? evmEffect : svmEffect)
  return {
    sign: (task, context) => effectOf(task).sign(task, context),
    confirm: (task, context) => effectOf(task).confirm(task, context),
  }
}

const isEvmAddress = (address: string): boolean => address.startsWith('0x')

const notSold = () => new Fault('unavailable', 'Credits are not sold on this chain any more')

const outdated = notExecuted({
  code: 'expired',
  message: 'The price was too old before the payment could be signed; nothing was paid',
  retryable: true,
})

/** Ends a proven payment; after a loss of the database, an operator may have settled the payment already. */
async function credited(
  { db, chains }: RechargeDeps,
  { id, userId, data }: RechargeTask,
  { proof, now }: { proof: PaymentProof; now: Date },
) {
  const { chain_id } = data
  const { txHash, logIndex, amountUnits } = proof
  const { native } = chains.find(({ id }) => id === chain_id)!
  const resolution = await resolutionOf(db, { ...proof, chainId: chain_id })
  if (resolution !== undefined)
    return {
      end: 'failed' as const,
      outcome: 'partial' as const,
      error: {
        code: 'conflict',
        message: `The payment was made, and an operator has settled it: ${resolution}`,
        retryable: false,
      },
      result: { ...rechargeResult(data, { txHash, amountUnits }), credits: 0 },
      spent: amountUnits,
    }
  return {
    end: 'completed' as const,
    outcome: 'executed' as const,
    result: rechargeResult(data, { txHash, amountUnits }),
    spent: amountUnits,
    moves: [
      purchasedCredits(userId, {
        key: `recharge:${chain_id}:${canonicalHex(txHash)}:${logIndex}`,
        credits: BigInt(data.credits),
        reason: rechargeKind,
      }),
    ],
    writes: (tx: Parameters<typeof addCredited>[0]) =>
      addCredited(
        tx,
        {
          ...proof,
          chainId: chain_id,
          token: native.address,
          taskId: id,
          state: 'credited',
        },
        now,
      ),
  }
}
