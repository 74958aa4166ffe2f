import { setTimeout as pause } from 'node:timers/promises'
import type { Ledger } from '#durable/ledger.ts'
import type { EvmBatches } from '#features/chains/batch.ts'
import type { Token } from '#kernel/chains.ts'
import { Fault } from '#kernel/fault.ts'
import { usdDecimals } from '#kernel/money.ts'
import { insufficientBalance } from '#kernel/shortage.ts'
import type { Queryable } from '#store/query.ts'
import type { Simulation } from '#upstreams/evm/evm.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import { lotBook, shareAsset } from './lots.ts'
import type { ReadSettled } from './settled-reading.ts'
import { externalOf, heldFor } from './shares.ts'

/** How a withdrawal is going to be made: a sum of assets, or shares to redeem. */
export type Plan = { assetsUnits: bigint | null; sharesUnits: bigint; holdUnits: bigint; gas: bigint }
export type Wish = { userId: string; positionId: string; account: string; assetsUnits: bigint | null }

type Needs = {
  on: Queryable
  vault: Vault
  usdc: string
  shareToken: Token
  ledger: Pick<Ledger, 'books'>
  batches: Pick<EvmBatches, 'simulate'>
  readSettled: ReadSettled
}

const settleMsMax = 3_000
const settlePollMs = 100

export const usdcToken = (address: string) => ({ symbol: 'USDC', decimals: usdDecimals, address })

const short = (usdc: string, requiredUnits: bigint, availableUnits: bigint): Fault =>
  insufficientBalance(usdcToken(usdc), { what: 'The withdrawal', requiredUnits, availableUnits })

export async function planWithdrawal(needs: Needs, wish: Wish): Promise<Plan> {
  const { on, vault, ledger } = needs
  const until = performance.now() + settleMsMax
  while (true) {
    const books = await ledger.books(on, wish.userId, shareAsset(vault))
    const mine = books.find(({ book }) => book === lotBook(wish.positionId))
    const available = mine?.availUnits ?? 0n
    if (available === 0n && (mine?.heldUnits ?? 0n) === 0n)
      throw new Fault('no_position', 'The position has no shares to withdraw')
    const { assetsUnits } = wish
    if (available === 0n)
      throw insufficientBalance(assetsUnits === null ? needs.shareToken : usdcToken(needs.usdc), {
        what: 'The withdrawal',
        requiredUnits: assetsUnits ?? mine?.heldUnits ?? 0n,
        availableUnits: 0n,
        note: 'every share of this position is set aside for other withdrawals',
        reason: 'set_aside',
      })
    const plan =
      assetsUnits === null
        ? await planWhole(needs, wish, available)
        : await planPart(needs, { ...wish, assetsUnits }, available)
    if (plan) return plan
    if (performance.now() > until)
      throw new Fault('unavailable', 'Earlier deposits or withdrawals of this account are still settling', {
        extras: { retry_after: 1 },
      })
    await pause(settlePollMs)
  }
}

/** The shares of one position that the chain still has; undefined where ledger and chain cannot be compared now. */
async function reachableOf({ readSettled }: Needs, { userId, positionId, account }: Wish) {
  const reading = await readSettled(userId, account)
  if (!reading) return undefined
  const lots = reading.lots.map(({ sharesUnits }) => sharesUnits)
  const index = reading.lots.findIndex((lot) => lot.positionId === positionId)
  const external = externalOf(lots, reading.onChainUnits)
  return index < 0 ? undefined : lots[index]! + external[index]!
}

/** The position's own shares as the ledger has them, and what came or went another way where that is known. */
async function planWhole(needs: Needs, wish: Wish, available: bigint): Promise<Plan | undefined> {
  const { vault, batches } = needs
  const { account } = wish
  const sharesUnits = (await reachableOf(needs, wish)) ?? available
  if (sharesUnits === 0n) throw lost(needs, available)
  const calls = vault.redeemCalls(account, sharesUnits)
  const trial = await batches.simulate(vault.chainId, account, calls)
  if (!trial.ok) return judgeFailure(needs, wish, { sharesUnits, trial })
  const holdUnits = sharesUnits < available ? sharesUnits : available
  return { assetsUnits: null, sharesUnits, holdUnits, gas: trial.gas }
}

/** Taken from the position's own shares, whatever the account has beside them. */
async function planPart(
  needs: Needs,
  wish: Wish & { assetsUnits: bigint },
  available: bigint,
): Promise<Plan | undefined> {
  const { vault, usdc, batches } = needs
  const { account, assetsUnits } = wish
  const worth = await vault.assetsOf(available)
  if (worth < assetsUnits) throw short(usdc, assetsUnits, worth)
  const trial = await batches.simulate(vault.chainId, account, vault.withdrawCalls(account, assetsUnits))
  if (!trial.ok) {
    const reachable = await reachableOf(needs, wish)
    const left = reachable === undefined ? worth : await vault.assetsOf(reachable)
    if (left < assetsUnits) throw short(usdc, assetsUnits, left)
    return judgeFailure(needs, wish, { sharesUnits: available, trial })
  }
  const needed = BigInt(trial.returns.at(-1) ?? '0x0')
  if (needed > available) throw short(usdc, assetsUnits, worth)
  return { assetsUnits, sharesUnits: needed, holdUnits: heldFor(needed, available), gas: trial.gas }
}

const lost = ({ shareToken }: Needs, available: bigint): Fault =>
  insufficientBalance(shareToken, {
    what: 'The withdrawal',
    requiredUnits: available,
    availableUnits: 0n,
    note: 'the shares of this position left the account another way',
    reason: 'external_loss',
  })

type Failed = { sharesUnits: bigint; trial: Extract<Simulation, { ok: false }> }

/** Where the shares are there, the vault has no means at hand. Where they are not, a node lags or others are settling. */
async function judgeFailure({ vault }: Needs, { account }: Wish, { sharesUnits, trial }: Failed) {
  const seen = await vault.account(account, trial.block)
  if (seen.sharesUnits < sharesUnits) return undefined
  throw new Fault('insufficient_liquidity', `The vault cannot pay out now: ${trial.reason}`, {
    extras: { reason: trial.reason },
  })
}
