import { setTimeout as pause } from 'node:timers/promises'
import type { Ledger } from '#durable/ledger.ts'
import type { EvmBatches } from '#features/chains/batch.ts'
import type { Caller } from '#kernel/caller.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault, invalid, notFound } from '#kernel/fault.ts'
import { isUuid, type Random, uuidv7 } from '#kernel/id.ts'
import { toUnits } from '#kernel/money.ts'
import type { Action, Policy } from '#kernel/signer.ts'
import type { AccountRef, Admission } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import type { EarnLimits } from './limits.ts'
import { cashAsset, lotAccount, lotBook, moveKeys, outsideOf, shareAsset, walletAccount } from './lots.ts'
import type { Market } from './market.ts'
import { heldFor, wholeOf } from './shares.ts'
import { addPosition, findPosition, type PositionRow } from './store.ts'

/** What is decided before a task exists: a request that cannot succeed is refused here. */

export type AdmitNeeds = {
  on: Queryable
  vault: Vault
  usdc: string
  ledger: Pick<Ledger, 'balance' | 'books'>
  batches: Pick<EvmBatches, 'ready' | 'simulate'>
  policy: Pick<Policy, 'check' | 'reserve'>
  market: Pick<Market, 'yield'>
  evmAddressOf: (userId: string) => Promise<string>
  limits: EarnLimits
  clock: Clock
  random: Random
}
type DepositInput = { amount_usdc: string; position_id?: string | null | undefined }
type WithdrawInput = { position_id: string; amount_usdc?: string | null | undefined }

const usdcDecimals = 6
const admissionMs = 10 * 60_000
const settleMsMax = 3_000
const settlePollMs = 100

export function admissions(needs: AdmitNeeds) {
  const { vault, on } = needs
  const place = { chainId: vault.chainId, vault: vault.address.toLowerCase() }

  const positionOf = async (userId: string, id: string): Promise<PositionRow> => {
    const found = isUuid(id) ? await findPosition(on, userId, place, id) : undefined
    if (!found) throw notFound('position')
    return found
  }
  return {
    deposit: (input: DepositInput, caller: Caller) => admitDeposit(needs, positionOf, input, caller),
    withdraw: (input: WithdrawInput, caller: Caller) => admitWithdraw(needs, positionOf, input, caller),
  }
}

type FindPosition = (userId: string, id: string) => Promise<PositionRow>

function amountOf(text: string, minimum: string): bigint {
  const units = toUnits(text, usdcDecimals)
  if (units >= toUnits(minimum, usdcDecimals)) return units
  const message = `Input should be at least ${minimum} USDC`
  throw invalid('body.amount_usdc', 'below_minimum', message, { minimum, unit: 'USDC' })
}

const short = (token: string, required: bigint, available: bigint): Fault =>
  new Fault('insufficient_balance', 'The free balance does not cover the amount', {
    extras: { token, required: String(required), available: String(available) },
  })

async function admitDeposit(
  { on, vault, usdc, ledger, batches, policy, market, evmAddressOf, limits, clock, random }: AdmitNeeds,
  positionOf: FindPosition,
  { amount_usdc, position_id }: DepositInput,
  { userId }: Caller,
): Promise<Admission> {
  const known = position_id ? await positionOf(userId, position_id) : undefined
  const amountUnits = amountOf(amount_usdc, limits.minDepositUsdc)
  const action: Omit<Action, 'taskId'> = {
    ...{ userId, operation: 'earn_deposit', chainId: vault.chainId },
    ...{ tokens: [usdc], recipients: [vault.address], usdMicros: amountUnits, exit: false },
  }
  await policy.check(action)
  const account = await evmAddressOf(userId)
  const wallet = walletAccount(userId, cashAsset(vault, usdc))
  await batches.ready(vault.chainId)
  const [{ cashUnits, settlements }, trial, { apy }] = await Promise.all([
    freeCash({ on, ledger, vault }, { wallet, account, usdc, amountUnits }),
    batches.simulate(vault.chainId, account, vault.depositCalls(account, amountUnits)),
    market.yield(),
  ])
  if (!trial.ok)
    throw new Fault('conflict', `The vault does not take the deposit: ${trial.reason}`, {
      extras: { reason: trial.reason },
    })
  const positionId = known?.id ?? uuidv7(clock.now(), random)
  const place = { chainId: vault.chainId, vault: vault.address.toLowerCase() }
  return {
    first: 'prepare',
    deadlineMs: admissionMs,
    data: {
      ...{ position_id: positionId, account, chain_id: vault.chainId, vault: vault.address },
      ...{ assets_units: String(amountUnits), amount_usdc, apy_at_action: apy },
    },
    observe: [{ account: wallet, totalUnits: cashUnits, settlements }],
    moves: (taskId) => [
      {
        ...{ move: 'hold', key: moveKeys(taskId).cash, debit: wallet, credit: outsideOf(wallet.asset) },
        ...{ amountUnits, reason: 'earn_deposit' },
      },
    ],
    also: async (tx, taskId) => {
      await policy.reserve(tx, { ...action, taskId })
      if (!known) await addPosition(tx, { ...place, id: positionId, userId, now: clock.now() })
    },
  }
}

type CashWish = { wallet: AccountRef; account: string; usdc: string; amountUnits: bigint }

/**
 * A deposit that the chain has taken and that is not settled yet counts twice for a moment: as held, and as gone. So
 * where the chain has enough and only the holds stand in the way, they get a little time to settle.
 */
async function freeCash(
  { on, ledger, vault }: Pick<AdmitNeeds, 'on' | 'ledger' | 'vault'>,
  { wallet, account, usdc, amountUnits }: CashWish,
): Promise<{ cashUnits: bigint; settlements: bigint }> {
  const until = performance.now() + settleMsMax
  while (true) {
    // The counter is read before the chain is asked: a hold that settles in between makes the answer worthless.
    const { heldUnits, settlements } = await ledger.balance(on, wallet)
    const { cashUnits } = await vault.account(account)
    const free = cashUnits > heldUnits ? cashUnits - heldUnits : 0n
    if (free >= amountUnits) return { cashUnits, settlements }
    const hopeless = cashUnits < amountUnits || heldUnits === 0n
    if (hopeless || performance.now() > until) throw short(usdc, amountUnits, free)
    await pause(settlePollMs)
  }
}

/** How a withdrawal is going to be made: a sum of assets, or shares to redeem. */
type Way = { assetsUnits: bigint | null; sharesUnits: bigint; holdUnits: bigint }

async function admitWithdraw(
  needs: AdmitNeeds,
  positionOf: FindPosition,
  { position_id, amount_usdc }: WithdrawInput,
  { userId }: Caller,
): Promise<Admission> {
  const { vault, usdc, batches, policy, market, evmAddressOf } = needs
  const position = await positionOf(userId, position_id)
  const asked = amount_usdc ?? null
  const assetsUnits = asked === null ? null : amountOf(asked, needs.limits.minWithdrawUsdc)
  const account = await evmAddressOf(userId)
  const action: Omit<Action, 'taskId'> = {
    ...{ userId, operation: 'earn_withdraw', chainId: vault.chainId },
    ...{ tokens: [usdc], recipients: [account], usdMicros: 0n, exit: true },
  }
  await policy.check(action)
  await batches.ready(vault.chainId)
  const way = await wayOf(needs, { userId, positionId: position.id, account, assetsUnits })
  const { apy } = await market.yield()
  const lot = lotAccount(userId, shareAsset(vault), position.id)
  return {
    first: 'prepare',
    deadlineMs: admissionMs,
    data: {
      ...{ position_id: position.id, account, chain_id: vault.chainId, vault: vault.address },
      ...{ assets_units: way.assetsUnits === null ? null : String(way.assetsUnits), amount_usdc: asked },
      ...{ shares_units: String(way.sharesUnits), held_shares: String(way.holdUnits), apy_at_action: apy },
    },
    moves: (taskId) => [
      {
        ...{ move: 'hold', key: moveKeys(taskId).shares, debit: lot, credit: outsideOf(lot.asset) },
        ...{ amountUnits: way.holdUnits, reason: 'earn_withdraw' },
      },
    ],
    also: (tx, taskId) => policy.reserve(tx, { ...action, taskId }),
  }
}

type Wish = { userId: string; positionId: string; account: string; assetsUnits: bigint | null }

async function wayOf(needs: AdmitNeeds, { userId, positionId, account, assetsUnits }: Wish): Promise<Way> {
  const { on, vault, usdc, ledger, batches } = needs
  const [books, { sharesUnits: onChain }] = await Promise.all([
    ledger.books(on, userId, shareAsset(vault)),
    vault.account(account),
  ])
  const mine = books.find(({ book }) => book === lotBook(positionId))
  const available = mine?.availUnits ?? 0n
  if (available === 0n && (mine?.heldUnits ?? 0n) === 0n)
    throw new Fault('no_position', 'The position has no shares to withdraw')
  if (available === 0n) throw short(vault.address, 1n, 0n)
  const total = books.reduce((sum, each) => sum + each.availUnits + each.heldUnits, 0n)
  if (assetsUnits === null) {
    const sharesUnits = wholeOf({ own: available, others: total - available, onChain })
    if (sharesUnits === 0n) throw short(vault.address, available, 0n)
    await tried(batches, vault, account, vault.redeemCalls(account, sharesUnits))
    return { assetsUnits, sharesUnits, holdUnits: available }
  }
  const worth = await vault.assetsOf(available < onChain ? available : onChain)
  if (worth < assetsUnits) throw short(usdc, assetsUnits, worth)
  const returned = await tried(batches, vault, account, vault.withdrawCalls(account, assetsUnits))
  const needed = BigInt(returned)
  if (needed > available) throw short(usdc, assetsUnits, worth)
  return { assetsUnits, sharesUnits: needed, holdUnits: heldFor(needed, available) }
}

/** The shares are there, so a vault that refuses has no means at hand. */
async function tried(
  batches: AdmitNeeds['batches'],
  vault: Vault,
  account: string,
  calls: ReturnType<Vault['redeemCalls']>,
): Promise<string> {
  const trial = await batches.simulate(vault.chainId, account, calls)
  if (trial.ok) return trial.returns.at(-1) ?? '0x0'
  throw new Fault('insufficient_liquidity', `The vault cannot pay out now: ${trial.reason}`, {
    extras: { reason: trial.reason },
  })
}
