import { readFreeUnits } from '#engines/free-units/free-units.ts'
import { Fault, invalid } from '#kernel/contract/fault.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { toUnits, usdcDecimals } from '#kernel/money/money.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { actionTerms, noFurtherCost } from '#kernel/task/approval.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { JsonObject } from '#kernel/task/task.ts'
import { fundedWallet } from './account-checks.ts'
import { cashAccount, cashLedgerToken, cashOf, cashSymbol, moneyOf } from './balances.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import { walletAccount } from './fund-admission.ts'
import type { RelayTaskData } from './relay-action.ts'
import { assertRelays } from './relay-allowance.ts'
import { destinationOf, type OnwardData, prepareOnward } from './withdraw-onward.ts'

/** Checks a withdrawal, and reserves its cash and the gas of its unwrapping before anything leaves the venue. */

export type WithdrawTaskData = RelayTaskData &
  OnwardData & {
    units: string
    /** What of it the venue sends; the rest lies in the user's own account since an earlier withdrawal. */
    venue_units?: string
    /** The token that is asked for; pusd is not unwrapped. */
    token: 'usdc' | 'usdc_e' | 'pusd'
    /** The transaction that brought the cash to the user's own account. */
    sent_tx?: string | null
    balance_changes?: JsonObject[]
    /** Whether the cash was reserved in the user's own account as it arrived there. */
    is_reserved?: boolean
    /** Whether it takes all cash that is free, which no budget for gas may stop. */
    full_exit: boolean
    /** Whether an earlier task of the same execution, which this database has lost, has unwrapped the cash. */
    was_unwrapped?: boolean
    /** When the cash was first expected in the user's own account, in milliseconds. */
    prepared_ms?: number
  }
/** What the approval and the unwrapping use at most; nothing can be simulated before the cash is there. */
const unwrapGas = 500_000n
/** What the swap after it uses about. */
const onwardGas = 500_000n
const withdrawMs = 48 * 3_600_000
const operation = 'predmkt_withdraw'
export const symbols = { usdc: 'USDC', usdc_e: 'USDC.e', pusd: cashSymbol } as const

export const withdrawFacts = (deps: PredmktDeps, account: string): Omit<PlannedAction, 'userId'> => ({
  operation,
  chainId: deps.chain.row.id,
  tokens: [moneyOf(deps).cashToken],
  recipients: [account],
  usdMicros: 0n,
  exit: true,
})

export const admitWithdraw = (deps: PredmktDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    check: (input: PredmktInput<'withdraw'>, { userId }) => checkWithdraw(deps, input, userId),
    fund: (withdrawal) => fundWithdrawal(deps, withdrawal),
    start({ data: asked }, { spend, fullExit, venueUnits }) {
      const data: WithdrawTaskData = { ...asked, full_exit: fullExit, venue_units: String(venueUnits) }
      const first = venueUnits === 0n ? ('prepare' as const) : ('sign' as const)
      return { first, deadlineMs: withdrawMs, data, spend }
    },
  })

export const venueUnitsOf = ({ units, venue_units: ofVenue = units }: WithdrawTaskData): bigint =>
  BigInt(ofVenue)

/** The tokens that the cash may be unwrapped to, the one that was asked for first: the venue can pause one. */
export function unwrapTokens(deps: Pick<PredmktDeps, 'venue'>, { token }: WithdrawTaskData) {
  const { wrappable } = moneyOf(deps)
  const asked = wrappable.filter(({ symbol }) => symbol === symbols[token])
  return [...asked, ...wrappable.filter((each) => !asked.includes(each))]
}

/** Whether the venue unwraps to none of its dollars now; a read that fails counts as open. */
export async function isRampPaused({ chain, venue }: Pick<PredmktDeps, 'chain' | 'venue'>): Promise<boolean> {
  const { wrappable, unwrapPausedCall } = moneyOf({ venue })
  const { results } = await chain.views(wrappable.map(({ token }) => unwrapPausedCall(token)))
  return results.every(({ success, data }) => success && data.length === 66 && BigInt(data) !== 0n)
}
export const rampPaused = 'venue_ramp_paused: the venue unwraps no cash now'

type Withdrawal = { action: PlannedAction; data: WithdrawTaskData }

async function checkWithdraw(
  deps: PredmktDeps,
  input: PredmktInput<'withdraw'>,
  userId: string,
): Promise<Withdrawal> {
  const { amount_usdc: amount, token = 'usdc' } = input
  const destination = destinationOf(deps, input)
  const wallet = await fundedWallet(deps, userId)
  const account = await deps.evmAddressOf(userId)
  const unwrapped = token === 'coin' ? 'usdc' : token
  const terms = actionTerms(`Withdraw ${amount} USD from Polymarket to your own wallet`, {
    token: symbols[unwrapped],
    amount,
    recipient: account,
    venue: 'Polymarket',
    cost: noFurtherCost,
  })
  const action = { userId, ...withdrawFacts(deps, account), terms }
  const units = toUnits(amount, usdcDecimals)
  const data: WithdrawTaskData = {
    wallet,
    account,
    token: unwrapped,
    units: String(units),
    amount_usd: amount,
    transfer_usd: null,
    full_exit: false,
    ...(destination && { destination }),
  }
  if (!destination) return { action, data }
  await deps.policy.check(action)
  // The withdrawal is an exit, but its swap counts against the limits, from the acceptance on.
  return { action: await prepareOnward(deps, { userId, destination, units }), data }
}

async function fundWithdrawal(deps: PredmktDeps, { action: { userId }, data }: Withdrawal) {
  const chainId = deps.chain.row.id
  const isUnwrapped = data.token !== 'pusd'
  if (isUnwrapped && (await isRampPaused(deps)))
    throw new Fault('unavailable', `${rampPaused}; with \`token: pusd\` it arrives as it is`, {
      extras: { reason: 'venue_ramp_paused' },
    })
  const readVenue = () => cashOf(deps, { userId, wallet: data.wallet })
  const readOwn = () => readOwnCash(deps, { userId, account: data.account })
  const [atVenue, own] = await Promise.all([readVenue(), isUnwrapped ? readOwn() : undefined])
  const units = BigInt(data.units)
  const venueUnits = atVenue.freeUnits < units ? atVenue.freeUnits : units
  const token = cashLedgerToken(deps)
  const availableUnits = atVenue.freeUnits + (own?.freeUnits ?? 0n)
  if (availableUnits < units)
    throw insufficientBalance(
      { ...token, chainId },
      { what: 'The withdrawal', requiredUnits: units, availableUnits },
    )
  const leastUnits = toUnits(deps.limits.minFundUsd, usdcDecimals)
  const isAll = units >= availableUnits
  if (!isAll && units < leastUnits)
    throw invalid(
      'amount_usdc',
      'greater_than_equal',
      `A withdrawal that leaves something is at least ${deps.limits.minFundUsd} USD`,
      { ge: Number(deps.limits.minFundUsd) },
    )
  // Dust is no full exit: it would be sent again and again, past the budget for gas.
  const fullExit = isAll && units >= leastUnits
  if (venueUnits > 0n) await assertRelays(deps, userId, { isExit: true })
  await deps.batches.ready(chainId, { fullExit })
  // It is charged here, because a refusal after the transfer would leave the cash half way. What the unwrapping does
  // not use of it, the swap can use.
  const gasUnits = data.destination ? unwrapGas + onwardGas : unwrapGas
  const gas = isUnwrapped
    ? await deps.batches.gasCharge({ chainId, gas: gasUnits, fullExit, isExit: true })
    : undefined
  const isOwnOnly = own !== undefined && venueUnits === 0n
  const { totalUnits, version } = isOwnOnly ? own : atVenue
  const spend = {
    account: isOwnOnly ? walletAccount(deps, userId, token.address) : cashAccount(deps, userId),
    amountUnits: isOwnOnly ? units : venueUnits,
    token,
    seen: { totalUnits, version, reread: isOwnOnly ? readOwn : readVenue },
    ...(gas && { gas }),
  }
  return { spend, fullExit, venueUnits }
}

/** The cash in the user's own account, where a withdrawal leaves it that could not unwrap it. */
export async function readOwnCash(
  deps: PredmktDeps,
  { userId, account }: { userId: string; account: string },
): Promise<{ totalUnits: bigint; freeUnits: bigint; version: bigint }> {
  const { cashToken } = moneyOf(deps)
  return readFreeUnits(deps, {
    account: walletAccount(deps, userId, cashToken),
    readTotal: async () => (await deps.chain.balances(account, [cashToken])).tokens[0] ?? 0n,
  })
}
