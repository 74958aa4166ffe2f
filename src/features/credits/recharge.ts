import type { Ledger } from '#durable/ledger.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type { BatchPlan, BatchTaskData } from '#engines/evm-batch/batch-rules.ts'
import { createAdmission } from '#kernel/admission.ts'
import { assetOf, type Chain, nativeSentinel } from '#kernel/chains.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { exactlyOneOf, Fault, invalid } from '#kernel/fault.ts'
import { insufficientBalance } from '#kernel/insufficient-balance.ts'
import { toMicros } from '#kernel/money.ts'
import { oneEffect } from '#kernel/one-effect.ts'
import { type InputOf, implement, type Operation, taskOf } from '#kernel/operation.ts'
import type { PlannedAction, Policy } from '#kernel/signer.ts'
import { type AccountRef, externalAccount, type TaskView } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { Payment } from '#upstreams/evm/till.ts'
import { creditsAsset, subAccountOf } from './buckets.ts'
import { rechargeContract } from './contract.ts'
import { agreedPrice, unitsWorth } from './native-amount.ts'
import { packs } from './packs.ts'
import { addCredited } from './payment-store.ts'
import { rechargeKind, type Till } from './till.ts'

/** Credits for the native coin of a chain: one payment from the user's wallet, credited once it is final. */

export type RechargeDeps = {
  db: Queryable
  ledger: Pick<Ledger, 'balance'>
  tills: readonly Till[]
  batches: EvmBatches
  policy: Pick<Policy, 'check'>
  /** Dollars for one native coin, from two independent sources. */
  priceSources: readonly [PriceSource, PriceSource]
  /** The call of a payment, and its events. */
  wire: {
    payData(taskId: string): string
    taskWord(taskId: string): string
    paymentsOf(logs: Receipt['logs'], till: string): Payment[]
    isTill(till: Till): Promise<boolean>
  }
  chainInfo: (row: Chain) => ChainInfoView
  evmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
  clock: Clock
}
/** Undefined where the source has no trusted price. */
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
export type RechargeTaskData = BatchTaskData & {
  pack_id: string
  credits: number
  chain_id: string
  till: string
  account: string
  amount_units: string
  /** Dollars for one coin, by which the amount was computed. */
  native_price_usd: string
  /** The amount holds until then: a payment that is not signed by then fails. */
  locked_until: string
}
type RechargeTask = TaskView<RechargeTaskData>
type Pack = (typeof packs)[number]

/** How long an amount may be signed after its prices were read. */
const lockMs = 60_000

export function recharge(deps: RechargeDeps): Operation[] {
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
    recharge: taskOf({ admit: admitRecharge(deps), steps: rechargeSteps(deps) }),
  })
}

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
  const names = [native.symbol.toLowerCase(), native.address.toLowerCase()]
  if (token !== undefined && token !== null && !names.includes(token.toLowerCase()))
    throw invalid(
      'token_address',
      'unsupported_asset',
      `Input should be ${native.address}: only the native coin pays for credits`,
      { possible: [native.address] },
    )
  return till
}

const actionOf = ({ chain, address }: Till, usdMicros: bigint): Omit<PlannedAction, 'userId'> => ({
  operation: rechargeKind,
  chainId: chain.row.id,
  tokens: [chain.row.native.address],
  recipients: [address],
  usdMicros,
  exit: false,
})

const admitRecharge = (deps: RechargeDeps) =>
  createAdmission({
    policy: deps.policy,
    async check(input: RechargeInput, { userId }) {
      const [pack, till] = [packOf(input), tillOf(deps, input)]
      const { row } = till.chain
      const wallet: AccountRef = {
        owner: userId,
        asset: assetOf(row, row.native.address),
        subAccount: 'wallet',
      }
      return { action: { userId, ...actionOf(till, toMicros(pack.priceUsd)) }, pack, till, wallet }
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
      // The call names the task, whose id the acceptance makes, so it is signed afterwards.
      return { first: 'sign', deadlineMs: lockMs, data, spend }
    },
  })

type RechargeRequest = { pack: Pack; till: Till; wallet: AccountRef }

async function fundRecharge(deps: RechargeDeps, { pack, till, wallet }: RechargeRequest) {
  const { batches, wire, clock } = deps
  const { id: chainId, displayName } = till.chain.row
  const account = await deps.evmAddressOf(wallet.owner)
  await batches.ready(chainId)
  const pricedAt = clock.now()
  const [price, isTill] = await Promise.all([trustedPrice(deps, till), wire.isTill(till)])
  // An account without code would keep the coins and credit nothing.
  if (!isTill) throw new Fault('unavailable', `The contract for payments is not on ${displayName}`)
  const amountUnits = unitsWorth(pack.priceUsd, price, till.chain.row.native.decimals)
  if (amountUnits > till.maxUnits)
    throw new Fault('unavailable', `At the price of now a payment on ${displayName} exceeds its limit`)
  const readCoins = () => coinsCovering(deps, { till, wallet, account, amountUnits })
  const seen = await readCoins()
  // Which task is named does not change what the call does.
  const call = { to: till.address, value: amountUnits, data: wire.payData(wallet.owner) }
  const simulation = await batches.simulate(chainId, account, [call])
  if (!simulation.ok)
    throw new Fault('conflict', `The payment would fail: ${simulation.reason}`, {
      extras: { reason: simulation.reason },
    })
  const order = { userId: wallet.owner, chainId, gas: simulation.gas, fullExit: false }
  const gas = await batches.gasCharge(order)
  const lockedUntil = later(pricedAt, lockMs)
  return { account, amountUnits, price, lockedUntil, seen: { ...seen, reread: readCoins }, gas }
}

/** Never a guess: without two prices that agree nothing is sold. */
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

type CoinsRequest = { till: Till; wallet: AccountRef; account: string; amountUnits: bigint }

async function coinsCovering(
  { db, ledger }: RechargeDeps,
  { till: { chain }, wallet, account, amountUnits }: CoinsRequest,
): Promise<{ totalUnits: bigint; version: bigint }> {
  // Read the version before the chain: a hold that settles in between invalidates the balance.
  const { heldUnits, version } = await ledger.balance(db, wallet)
  const { nativeUnits: totalUnits } = await chain.balances(account, [])
  const available = totalUnits > heldUnits ? totalUnits - heldUnits : 0n
  if (available >= amountUnits) return { totalUnits, version }
  throw insufficientBalance(chain.row.native, {
    what: 'The payment',
    requiredUnits: amountUnits,
    availableUnits: available,
  })
}

function batchOf({ tills, wire }: RechargeDeps, { id, data }: RechargeTask): BatchPlan {
  const till = tills.find(({ chain }) => chain.row.id === data.chain_id)
  if (!till) throw new Fault('unavailable', 'Credits are not sold on this chain any more')
  const amountUnits = BigInt(data.amount_units)
  const pack = packs.find(({ packId }) => packId === data.pack_id)
  return {
    ...actionOf({ ...till, address: data.till }, toMicros(pack?.priceUsd ?? '0')),
    account: data.account,
    calls: [{ to: data.till, value: amountUnits, data: wire.payData(id) }],
    spends: [{ token: till.chain.row.native.address, amountUnits, spender: data.till }],
  }
}

type PaymentProof = { payment: Payment; receipt: Receipt }

const rechargeSteps = (deps: RechargeDeps) => {
  const { batches, wire, changed, tills } = deps
  return oneEffect({
    driver: batches.driver<RechargeTaskData, PaymentProof>({
      prove({ id, data }, receipt) {
        const isOwn = ({ payer, amountUnits, task }: Payment) =>
          payer === data.account.toLowerCase() &&
          amountUnits === BigInt(data.amount_units) &&
          task.toLowerCase() === wire.taskWord(id)
        const payment = wire.paymentsOf(receipt.logs, data.till).find(isOwn)
        return payment && { payment, receipt }
      },
      changes({ data }, { payment }) {
        const native = tills.find(({ chain }) => chain.row.id === data.chain_id)?.chain.row.native
        if (!native) return []
        const { address, symbol, decimals } = native
        const amount = String(-payment.amountUnits)
        return [{ chain_id: data.chain_id, token_address: address, symbol, amount, decimals }]
      },
      onFinal: ({ userId, data }) => changed(userId, data.chain_id),
    }),
    plan(task, { now }) {
      if (now > new Date(task.data.locked_until)) return outdated
      return batchOf(deps, task)
    },
    settle: (task, proof, { now }) => credited(task, proof, now),
  })
}

const outdated = {
  end: 'failed',
  outcome: 'not_executed',
  error: {
    code: 'expired',
    message: 'The price was too old before the payment could be signed; nothing was paid',
    retryable: true,
  },
} as const

function credited({ id, userId, data }: RechargeTask, { payment, receipt }: PaymentProof, now: Date) {
  const { pack_id, credits, chain_id, native_price_usd } = data
  const { txHash, block } = receipt
  const { index: logIndex, payer, amountUnits } = payment
  const facts = { chainId: chain_id, txHash, logIndex, block, payer, amountUnits }
  return {
    end: 'completed' as const,
    outcome: 'executed' as const,
    result: {
      pack_id,
      credits,
      chain_id,
      tx_hash: txHash,
      paid: String(amountUnits),
      native_price_usd,
    },
    spent: amountUnits,
    moves: [
      {
        move: 'transfer' as const,
        key: `recharge:${chain_id}:${txHash.toLowerCase()}:${logIndex}`,
        debit: externalAccount(creditsAsset),
        credit: { owner: userId, asset: creditsAsset, subAccount: subAccountOf('purchased') },
        amountUnits: BigInt(credits),
        reason: rechargeKind,
      },
    ],
    writes: (tx: Parameters<typeof addCredited>[0]) =>
      addCredited(tx, { ...facts, token: nativeSentinel, taskId: id, state: 'credited' }, now),
  }
}
