import type { Static } from 'typebox'
import { frozenReason } from '#features/venue/account-store.ts'
import { lastTaskOf } from '#features/venue/store.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { contract } from './contract.ts'
import type { PerpLimits } from './limits.ts'
import type { Agents } from './setup.ts'
import { modeOf } from './views.ts'

/** How far the set-up is, as the venue knows it now. */

export type SetupStatus = Static<(typeof contract)['entries']['setupStatus']['output']>

type Needs = {
  on: Queryable
  venue: Pick<Hyperliquid, 'account' | 'role' | 'agents' | 'accountMode'>
  agents: Pick<Agents, 'of'>
  evmAddressOf: (userId: string) => Promise<string>
  clock: Clock
  limits: PerpLimits
}

export const setupStatus =
  ({ on, venue, agents, evmAddressOf, clock, limits }: Needs) =>
  async (userId: string): Promise<SetupStatus> => {
    const account = await evmAddressOf(userId)
    const [{ current, waiting }, state, known, mode, last, frozen] = await Promise.all([
      agents.of(userId),
      venue.account(account),
      venue.agents(account),
      venue.accountMode(account),
      lastTaskOf(on, userId, 'perp_setup'),
      frozenReason(on, userId),
    ])
    const shown = current ?? waiting
    const listed = known.find(({ address }) => address.toLowerCase() === current?.address.toLowerCase())
    const nowMs = Math.max(clock.now().getTime(), state.timeMs)
    const approved = listed !== undefined && listed.validUntilMs > nowMs
    const hasMoney = state.accountValueUsd !== '0' || state.positions.length > 0 || known.length > 0
    const activated = hasMoney || (await venue.role(account)) !== 'missing'
    const lastError = last?.status === 'failed' ? String(last.error?.message ?? '') || null : null
    return {
      ...{ setup_complete: activated && approved, account_activated: activated, eoa_address: account },
      api_wallet_address: shown?.address ?? null,
      api_wallet_expires_at: listed ? new Date(listed.validUntilMs).toISOString() : null,
      ...{ account_mode: modeOf(mode), account_value_usd: state.accountValueUsd },
      ...{ withdrawable_usd: state.withdrawableUsd, min_fund_usd: limits.minFundUsd },
      steps: [
        { key: 'agent_key', done: shown !== undefined, error: null },
        { key: 'account_activated', done: activated, error: null },
        { key: 'agent_approved', done: approved, error: approved ? null : lastError },
      ],
      last_error: frozen === undefined ? (approved ? null : lastError) : `Nothing is opened: ${frozen}`,
    }
  }
