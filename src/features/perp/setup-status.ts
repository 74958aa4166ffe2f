import type { TradingKeys } from '#engines/custody/trading-keys.ts'
import { isUnified } from '#engines/venue/records/account-mode.ts'
import { frozenReason } from '#engines/venue/records/account-store.ts'
import { lastTaskOf } from '#engines/venue/records/order-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Static } from '#kernel/contract/schema.ts'
import type { Queryable } from '#store/query.ts'
import type { AccountViews } from '#upstreams/hyperliquid/account-view-cache.ts'
import type { contract } from './contract.ts'
import { renewAheadMs } from './key-renewal-lead.ts'
import type { PerpLimits } from './limits.ts'
import { modeOf, unifiedValue } from './views.ts'

export type SetupStatus = Static<(typeof contract)['entries']['setupStatus']['output']>

type SetupStatusDeps = {
  db: Queryable
  views: Pick<AccountViews, 'account' | 'agents' | 'mode' | 'spotBalances' | 'rateLimit'>
  tradingKeys: Pick<TradingKeys, 'of'>
  viewedAccountOf: (userId: string) => Promise<string>
  clock: Clock
  limits: PerpLimits
}

export const createSetupStatus =
  ({ db, views, tradingKeys, viewedAccountOf, clock, limits }: SetupStatusDeps) =>
  async (userId: string): Promise<SetupStatus> => {
    const account = await viewedAccountOf(userId)
    const [{ current, waiting }, { value: state }, last, frozen] = await Promise.all([
      tradingKeys.of(userId),
      views.account(account),
      lastTaskOf(db, userId, 'perp_setup'),
      frozenReason(db, userId),
    ])
    const hasPerp = state.accountValueUsd !== '0' || state.positions.length > 0
    const spot = hasPerp && current ? [] : (await views.spotBalances(account)).value
    const activated = hasPerp || current !== undefined || spot.length > 0
    // An account that does not exist at the venue has no settings there.
    const [{ value: mode }, { value: known }] = activated
      ? await Promise.all([views.mode(account), current ? views.agents(account) : noAgents])
      : [{ value: 'default' }, await noAgents]
    const requests = current ? await requestsOf(views, account) : null
    const shown = current ?? waiting
    const listed = known.find(({ address }) => address.toLowerCase() === current?.address.toLowerCase())
    const nowMs = Math.max(clock.now().getTime(), state.timeMs)
    const approved = listed !== undefined && listed.validUntilMs > nowMs
    const lastError = last?.status === 'failed' ? String(last.error?.message ?? '') || null : null
    const { accountValueUsd, withdrawableUsd } = isUnified(mode)
      ? unifiedValue(spot.length > 0 ? spot : (await views.spotBalances(account)).value)
      : state
    return {
      setup_complete: activated && approved,
      account_activated: activated,
      eoa_address: account,
      api_wallet_address: shown?.address ?? null,
      api_wallet_expires_at: listed ? new Date(listed.validUntilMs).toISOString() : null,
      api_wallet_renews_at: listed ? new Date(listed.validUntilMs - renewAheadMs).toISOString() : null,
      account_mode: modeOf(mode),
      account_value_usd: accountValueUsd,
      withdrawable_usd: withdrawableUsd,
      min_fund_usd: limits.minFundUsd,
      steps: [
        { key: 'agent_key', done: shown !== undefined, error: null },
        { key: 'account_activated', done: activated, error: null },
        { key: 'agent_approved', done: approved, error: approved ? null : lastError },
      ],
      venue_requests: requests,
      last_error:
        frozen === undefined
          ? approved
            ? null
            : lastError
          : `The account is frozen and opens no positions: ${frozen}`,
    }
  }

/**
 * Returns the request limits of the account; null if the venue does not answer, so that the rest of the status is still
 * shown.
 */
async function requestsOf(
  views: Pick<AccountViews, 'rateLimit'>,
  account: string,
): Promise<SetupStatus['venue_requests']> {
  try {
    const { value } = await views.rateLimit(account)
    return { used: value.used, cap: value.cap, limited: value.used > value.cap }
  } catch (fault) {
    if (fault instanceof Fault) return null
    throw fault
  }
}

const noAgents = Promise.resolve({ value: [] as Awaited<ReturnType<AccountViews['agents']>>['value'] })
