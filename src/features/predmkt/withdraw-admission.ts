import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { toUnits, usdcDecimals } from '#kernel/money/money.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { actionTerms, noFurtherCost } from '#kernel/task/approval.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import type { JsonObject } from '#kernel/task/task.ts'
import { tradingAccount } from './account-checks.ts'
import { cashAccount, cashLedgerToken, cashOf, cashSymbol, moneyOf } from './balances.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import type { RelayTaskData } from './relay-action.ts'
import { destinationOf, type OnwardData, prepareOnward } from './withdraw-onward.ts'

/** Checks a withdrawal, and reserves its cash and the gas of its unwrapping before anything leaves the venue. */

export type WithdrawTaskData = RelayTaskData &
  OnwardData & {
    units: string
    /** The token that is asked for; pusd is not unwrapped. */
    token: 'usdc' | 'usdc_e' | 'pusd'
    /** The transaction that brought the cash to the user's own account. */
    sent_tx?: string | null
    balance_changes?: JsonObject[]
    /** Whether it takes all cash that is free, which no budget for gas may stop. */
    full_exit: boolean
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
    start: ({ data }, { spend, fullExit }) => ({
      first: 'sign' as const,
      deadlineMs: withdrawMs,
      data: { ...data, full_exit: fullExit },
      spend,
    }),
  })

type Withdrawal = { action: PlannedAction; data: WithdrawTaskData }

async function checkWithdraw(
  deps: PredmktDeps,
  input: PredmktInput<'withdraw'>,
  userId: string,
): Promise<Withdrawal> {
  const { amount_usdc: amount, token = 'usdc' } = input
  const destination = destinationOf(deps, input)
  const { wallet } = await tradingAccount(deps, userId)
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
  const read = () => cashOf(deps, { userId, wallet: data.wallet })
  const { freeUnits, totalUnits, version } = await read()
  const units = BigInt(data.units)
  const token = cashLedgerToken(deps)
  if (freeUnits < units)
    throw insufficientBalance(
      { ...token, chainId: deps.chain.row.id },
      { what: 'The withdrawal', requiredUnits: units, availableUnits: freeUnits },
    )
  const fullExit = freeUnits === units
  await deps.batches.ready(deps.chain.row.id, { fullExit })
  // It is charged here, because a refusal after the transfer would leave the cash half way. What the unwrapping does
  // not use of it, the swap can use.
  const gasUnits = data.destination ? unwrapGas + onwardGas : unwrapGas
  const gas =
    data.token === 'pusd'
      ? undefined
      : await deps.batches.gasCharge({ chainId: deps.chain.row.id, gas: gasUnits, fullExit })
  const spend = {
    account: cashAccount(deps, userId),
    amountUnits: units,
    token,
    seen: { totalUnits, version, reread: read },
    ...(gas && { gas }),
  }
  return { spend, fullExit }
}
