import { createLru } from '#kernel/async/create-lru.ts'
import type { PredictionAccountRow } from '#store/tables/predmkt.ts'
import { chainShares } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { heldOf, sharesOfRow } from './positions.ts'
import { provenRedemptions, rowsOf, targetWith } from './redemption-proof.ts'
import { isWalletTaken, lockAccount, walletOfRow } from './store/account-store.ts'
import { type FillSums, fillSums } from './store/fill-store.ts'
import { addRedemption } from './store/redemption-store.ts'

/** Books what the venue has redeemed by itself, so that it counts whether anybody asks for the redemption or not. */

/** An account with something open is compared all the time, and its shares only now and then. */
const everyMs = 60_000
const accountsMax = 10_000
const noTask = '00000000-0000-0000-0000-000000000000'

export function createVenueRedemptions(deps: PredmktDeps) {
  const readMs = createLru<string, number>(accountsMax)
  return async (account: PredictionAccountRow, { isIdle, now }: { isIdle: boolean; now: Date }) => {
    const key = account.user_id
    if (!isIdle && now.getTime() - (readMs.get(key) ?? 0) < everyMs) return
    readMs.set(key, now.getTime())
    await bookRedemptions(deps, account, now)
  }
}

async function bookRedemptions(deps: PredmktDeps, account: PredictionAccountRow, now: Date): Promise<void> {
  const { db, venue, transact } = deps
  const wallet = walletOfRow(account)
  const owner = { userId: account.user_id, venue: venue.name }
  const gone = await goneOutcomes(deps, wallet.wallet, await fillSums(db, owner))
  if (gone.length === 0) return
  const markets = await venue.marketsById([...new Set(gone.map(({ market_id }) => market_id))])
  const targets = [...markets.values()].flatMap((market) => {
    const held = market.outcomes.map(({ outcomeId }) => {
      const sums = gone.find(({ outcome_id }) => outcome_id === outcomeId)
      return sums ? heldOf(sums).units : 0n
    })
    const target = market.payoutMicros && targetWith(market, held)
    return target ? [target] : []
  })
  const found = await provenRedemptions(deps, { userId: account.user_id, wallet }, targets)
  if (found.length === 0) return
  await transact(async (tx) => {
    await lockAccount(tx, owner)
    // A task that has the wallet books what its own batch redeems.
    if (await isWalletTaken(tx, owner, noTask)) return
    for (const redemption of found)
      for (const row of rowsOf(redemption, { ...owner, taskId: null, now })) await addRedemption(tx, row)
  })
}

/** The outcomes of which the chain has fewer shares than the record; strangers may have sent some to the wallet. */
async function goneOutcomes(
  deps: PredmktDeps,
  wallet: string,
  sums: readonly FillSums[],
): Promise<FillSums[]> {
  const held = sums.filter(
    (each) => heldOf(each).units > 0n && each.unsettled_buy === '0' && each.unsettled_sell === '0',
  )
  const units = await chainShares(deps, wallet, held.map(sharesOfRow))
  return held.filter((each, index) => units[index]! < heldOf(each).units)
}
