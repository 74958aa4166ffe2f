import { type LastTask, lastTaskOf } from '#engines/venue/records/order-store.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { SetupStep } from '#kernel/money/prediction-setup.ts'
import type { AccessCheck } from './account-checks.ts'
import type { SetupStatusView } from './account-contract.ts'
import { cashOf } from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { acknowledgedAt } from './disclaimer.ts'
import { readyProtocols, setupStepsOf } from './setup-steps.ts'
import { accountOf, walletOfRow } from './store/account-store.ts'
import { modeOf } from './store/venue-mode.ts'

type StatusDeps = PredmktDeps & { access: AccessCheck }

const zero = '0'

export const createSetupStatus =
  (deps: StatusDeps) =>
  async (userId: string): Promise<SetupStatusView> => {
    const { db, venue, keys, limits } = deps
    const owner = await deps.evmAddressOf(userId)
    const [row, credentials, acknowledged, ...tasks] = await Promise.all([
      accountOf(db, { userId, venue: venue.name }),
      keys.of(userId),
      acknowledgedAt(db, userId),
      lastTaskOf(db, userId, 'predmkt_setup'),
      lastTaskOf(db, userId, 'predmkt_setup_v2'),
    ])
    const wallet = row ? walletOfRow(row) : venue.walletsOf(owner)[0]!
    const isOffered = venue.setup !== undefined
    const [steps, cash, wrappable, addresses, access, limited] = await Promise.all([
      isOffered ? setupStepsOf(deps, userId, wallet) : [],
      row ? cashOf(deps, { userId, wallet }) : undefined,
      wrappableOf(deps, owner, wallet),
      row && venue.depositAddresses ? venue.depositAddresses(wallet.wallet).catch(ignoreFault) : undefined,
      deps.access.of(userId, credentials).catch(ignoreFault),
      modeOf(db, venue.name, deps.clock.now()),
    ])
    const ready = readyProtocols(steps, venue.protocols)
    const complete = isOffered && ready.length === venue.protocols.length
    return {
      venue: 'polymarket',
      offered: isOffered,
      setup_complete: complete,
      v2_enabled: venue.protocols.includes('v2'),
      v2_complete: isOffered && ready.includes('v2'),
      wallet_kind: wallet.kind === 'safe' ? 'safe' : 'deposit_wallet',
      safe_address: row ? wallet.wallet : null,
      eoa_address: owner,
      deposit_address_evm: addresses?.evm ?? null,
      deposit_address_svm: addresses?.svm ?? null,
      steps: steps.map((step) => stepView(step, row?.waiting_until ?? null)),
      approvals: steps.flatMap(approvalView),
      protocols: { v1: isOffered && ready.includes('v1'), v2: isOffered && ready.includes('v2') },
      ...tradingView(access, limited),
      spendable_cash_usd: cash ? fromUnits(cash.freeUnits, usdcDecimals) : zero,
      locked_usd: cash ? fromUnits(cash.lockedUnits, usdcDecimals) : zero,
      wrappable,
      min_fund_usd: limits.minFundUsd,
      disclaimer_acknowledged_at: acknowledged?.toISOString() ?? null,
      last_error: complete ? null : lastErrorOf(tasks),
    }
  }

/** Returns why the newest of these tasks failed; ids of tasks sort by time. */
export function lastErrorOf(tasks: readonly (LastTask | undefined)[]): string | null {
  const [last] = tasks.filter((task) => task !== undefined).sort((a, b) => (a.id < b.id ? 1 : -1))
  return last?.status === 'failed' ? String(last.error?.message ?? '') || null : null
}

/** What the account itself may not do lasts longer than what the venue takes from nobody. */
function tradingView(
  access: Awaited<ReturnType<AccessCheck['of']>> | undefined,
  limited: Awaited<ReturnType<typeof modeOf>>,
): Pick<SetupStatusView, 'trading' | 'trading_until'> {
  if (limited && (access === 'open' || access === undefined))
    return { trading: limited.mode, trading_until: limited.until?.toISOString() ?? null }
  return { trading: access ?? 'unknown', trading_until: null }
}

const stepView = ({ key, label, isDone }: SetupStep, waitingUntil: Date | null) => ({
  key,
  label,
  done: isDone,
  waiting_until: isDone || waitingUntil === null ? null : waitingUntil.toISOString(),
})

function approvalView({ approval, protocol, isDone }: SetupStep) {
  if (!approval || (protocol !== 'v1' && protocol !== 'v2')) return []
  return [{ ...approval, protocol: protocol as 'v1' | 'v2', ok: isDone }]
}

/** Dollars in the user's own account or in the funded wallet that are no cash yet. */
async function wrappableOf(
  { chain, venue }: Pick<PredmktDeps, 'chain' | 'venue'>,
  owner: string,
  { wallet }: VenueWallet,
): Promise<SetupStatusView['wrappable']> {
  const tokens = venue.money?.wrappable ?? []
  const places = [
    { wallet: 'eoa' as const, address: owner },
    { wallet: 'deposit_wallet' as const, address: wallet },
  ]
  const rows = await Promise.all(
    places.map(async (place) => {
      const { tokens: units } = await chain.balances(
        place.address,
        tokens.map(({ token }) => token),
      )
      return tokens.map(({ symbol }, index) => ({
        token: symbol === 'USDC' ? ('usdc' as const) : ('usdc_e' as const),
        wallet: place.wallet,
        amount: String(units[index] ?? 0n),
      }))
    }),
  )
  return rows.flat().filter(({ amount }) => amount !== '0')
}

const ignoreFault = (error: unknown): undefined => {
  if (error instanceof Fault) return undefined
  throw error
}
