import { Fault } from '#kernel/contract/fault.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { VenueCredentials } from '#kernel/money/prediction-venue.ts'
import type { PredmktDeps } from './deps.ts'
import { accountOf, walletOfRow } from './store/account-store.ts'

/** What an operation asks of the account before a task exists. */

export const setupIncomplete = (missing: readonly string[]): Fault =>
  new Fault('setup_incomplete', `The set-up lacks ${missing.join(', ')}: \`predmkt_setup\` completes it`, {
    extras: { missing },
  })

export type TradingAccount = { wallet: VenueWallet; credentials: VenueCredentials }

/** Returns wallet and key of a user whose set-up is complete for the protocol; without one, any protocol does. */
export async function tradingAccount(
  { db, venue, keys }: Pick<PredmktDeps, 'db' | 'venue' | 'keys'>,
  userId: string,
  protocol?: string,
): Promise<TradingAccount> {
  const [row, credentials] = await Promise.all([
    accountOf(db, { userId, venue: venue.name }),
    keys.of(userId),
  ])
  if (!row || !credentials)
    throw setupIncomplete([...(credentials ? [] : ['key']), ...(row ? [] : ['wallet'])])
  const ready = { v1: row.v1_ready_at !== null, v2: row.v2_ready_at !== null } as Record<string, boolean>
  const isReady = protocol === undefined ? Object.values(ready).includes(true) : ready[protocol] === true
  if (!isReady)
    throw setupIncomplete([protocol === undefined ? 'approvals' : `approvals of protocol ${protocol}`])
  return { wallet: walletOfRow(row), credentials }
}

/** Returns the wallet of a user: money leaves it by the owner's signature, whatever else of the set-up is missing. */
export async function fundedWallet(
  { db, venue }: Pick<PredmktDeps, 'db' | 'venue'>,
  userId: string,
): Promise<VenueWallet> {
  const row = await accountOf(db, { userId, venue: venue.name })
  if (!row) throw setupIncomplete(['wallet'])
  return walletOfRow(row)
}

/** How long an answer of the venue about access counts; a refusal is asked again sooner, because it may have ended. */
const accessMs = 60_000
const refusalMs = 5_000

export type AccessCheck = {
  /** Throws if the venue lets the account only reduce, or not trade at all. */
  assertMayOpen(userId: string, credentials: VenueCredentials): Promise<void>
  of(userId: string, credentials: VenueCredentials | undefined): Promise<'open' | 'close_only' | 'blocked'>
  /** Makes the next check ask the venue, which has refused an order. */
  forget(userId: string): void
}

export function createAccessCheck({ venue, clock }: Pick<PredmktDeps, 'venue' | 'clock'>): AccessCheck {
  const closedOnly = new Map<string, { atMs: number; isClosedOnly: boolean }>()
  let region: { atMs: number; isBlocked: boolean } | undefined
  const isFresh = (atMs: number, { isRefused }: { isRefused: boolean }) =>
    clock.now().getTime() - atMs < (isRefused ? refusalMs : accessMs)
  const regionBlocked = async () => {
    if (!region || !isFresh(region.atMs, { isRefused: region.isBlocked }))
      region = { atMs: clock.now().getTime(), isBlocked: (await venue.access()).isBlocked }
    return region.isBlocked
  }
  const accountClosed = async (userId: string, credentials: VenueCredentials) => {
    const known = closedOnly.get(userId)
    if (known && isFresh(known.atMs, { isRefused: known.isClosedOnly })) return known.isClosedOnly
    const isClosedOnly = await venue.isClosedOnly(credentials)
    if (closedOnly.size > 10_000) closedOnly.clear()
    closedOnly.set(userId, { atMs: clock.now().getTime(), isClosedOnly })
    return isClosedOnly
  }
  return {
    forget(userId) {
      region = undefined
      closedOnly.delete(userId)
    },
    async of(userId, credentials) {
      if (await regionBlocked()) return 'blocked'
      if (credentials && (await accountClosed(userId, credentials))) return 'close_only'
      return 'open'
    },
    async assertMayOpen(userId, credentials) {
      if (await regionBlocked())
        throw new Fault(
          'venue_restricted',
          'The venue takes no purchases from this region: cancels, redemptions, withdrawals, and where it lets the region close, sales work',
        )
      if (await accountClosed(userId, credentials))
        throw new Fault(
          'venue_restricted',
          'The venue lets this account only close: sales, cancels, redemptions and withdrawals work',
        )
    },
  }
}

export async function credentialsOf(
  { keys }: Pick<PredmktDeps, 'keys'>,
  userId: string,
): Promise<VenueCredentials> {
  const credentials = await keys.of(userId)
  if (!credentials) throw setupIncomplete(['key'])
  return credentials
}
