import { setTimeout as pause } from 'node:timers/promises'
import type { Ledger } from '#durable/ledger.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import { createAdmission } from '#kernel/admission.ts'
import type { Token } from '#kernel/chains.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault, invalid, notFound } from '#kernel/fault.ts'
import { isUuid, type Random, uuidv7 } from '#kernel/id.ts'
import { insufficientBalance } from '#kernel/insufficient-balance.ts'
import { toUnits, usdcDecimals } from '#kernel/money.ts'
import type { PlannedAction, Policy } from '#kernel/signer.ts'
import type { AccountRef, BalanceSnapshot } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Vault } from '#upstreams/vault/vault.ts'
import type { EarnInput } from './contract.ts'
import { addEarnAccount, earnAccountOf, minBlockFor, type VaultRef } from './earn-account.ts'
import { cashAsset, moveKeys, positionAccount, shareAsset, walletAccount } from './ledger-accounts.ts'
import type { EarnLimits } from './limits.ts'
import type { ReadSettled } from './settled-reading.ts'
import { addPosition, findPosition, type PositionRow } from './store.ts'
import type { VaultRates } from './vault-rates.ts'
import type { VaultTaskData } from './vault-steps.ts'
import { planWithdrawal, usdcToken } from './withdrawal-plan.ts'

/** Checks before a task exists: a request that cannot succeed is rejected here. */

export type AdmissionDeps = {
  db: Queryable
  vault: Vault
  usdc: string
  shareToken: Token
  ledger: Pick<Ledger, 'balance' | 'subAccounts'>
  readSettled: ReadSettled
  batches: Pick<EvmBatches, 'ready' | 'simulate' | 'charge'>
  policy: Pick<Policy, 'check' | 'reserve'>
  rates: Pick<VaultRates, 'yield'>
  evmAddressOf: (userId: string) => Promise<string>
  limits: EarnLimits
  clock: Clock
  random: Random
}

const admissionMs = 10 * 60_000
const settleMsMax = 3_000
const settlePollMs = 100

const vaultRefOf = (vault: Vault): VaultRef => ({
  chainId: vault.chainId,
  vault: vault.address.toLowerCase(),
})

async function positionOf({ db, vault }: AdmissionDeps, userId: string, id: string): Promise<PositionRow> {
  const found = isUuid(id) ? await findPosition(db, userId, vaultRefOf(vault), id) : undefined
  if (!found) throw notFound('position', 'earn_positions')
  return found
}

function amountOf(text: string, minimum: string): bigint {
  const units = toUnits(text, usdcDecimals)
  if (units >= toUnits(minimum, usdcDecimals)) return units
  const message = `Input should be at least ${minimum} USDC, which is the minimum`
  throw invalid('amount_usdc', 'below_minimum', message, { minimum, unit: 'USDC' })
}

export const admitDeposit = (deps: AdmissionDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    check: (input: EarnInput<'deposit'>, { userId }) => checkDeposit(deps, input, userId),
    fund: (deposit) => fundDeposit(deps, deposit),
    start(deposit, { account, apy, observed, chargeGas }) {
      const { action, amountUnits, amountText, wallet, isNew } = deposit
      const { vault, random, clock } = deps
      const positionId = deposit.positionId ?? uuidv7(clock.now(), random)
      const data: VaultTaskData = {
        position_id: positionId,
        account,
        chain_id: vault.chainId,
        vault: vault.address,
        assets_units: String(amountUnits),
        amount_usdc: amountText,
        apy_at_action: apy,
      }
      return {
        first: 'prepare',
        deadlineMs: admissionMs,
        data,
        observed,
        hold: {
          keyOf: (taskId) => moveKeys(taskId).cash,
          account: wallet,
          amountUnits,
          reason: 'earn_deposit',
          token: usdcToken(deps.usdc),
        },
        async writes(tx, taskId) {
          const { userId } = action
          const vaultRef = vaultRefOf(vault)
          await chargeGas(tx, taskId)
          await assertNotFrozen(tx, userId, vaultRef)
          if (!isNew) return
          await addPosition(tx, { ...vaultRef, id: positionId, userId, taskId, now: clock.now() })
          await addEarnAccount(tx, userId, vaultRef, clock.now())
        },
      }
    },
  })

async function checkDeposit(
  deps: AdmissionDeps,
  { amount_usdc: amountText, position_id }: EarnInput<'deposit'>,
  userId: string,
) {
  const { vault, usdc, limits } = deps
  const existing = position_id ? await positionOf(deps, userId, position_id) : undefined
  const amountUnits = amountOf(amountText, limits.minDepositUsdc)
  const action: PlannedAction = {
    userId,
    operation: 'earn_deposit',
    chainId: vault.chainId,
    tokens: [usdc],
    recipients: [vault.address],
    usdMicros: amountUnits,
    exit: false,
  }
  const wallet = walletAccount(userId, cashAsset(vault, usdc))
  return { action, amountUnits, amountText, wallet, positionId: existing?.id, isNew: existing === undefined }
}
type Deposit = Awaited<ReturnType<typeof checkDeposit>>

async function fundDeposit(deps: AdmissionDeps, { action: { userId }, amountUnits, wallet }: Deposit) {
  const { db, vault, usdc, ledger, batches, rates } = deps
  await assertNotFrozen(db, userId, vaultRefOf(vault))
  const account = await deps.evmAddressOf(userId)
  await batches.ready(vault.chainId)
  const readCash = () => awaitFreeCash(deps, { wallet, account, usdc, amountUnits })
  const [firstCash, simulation, { apy }] = await Promise.all([
    readCash(),
    batches.simulate(vault.chainId, account, vault.depositCalls(account, amountUnits)),
    rates.yield(),
  ])
  if (!simulation.ok)
    throw new Fault('conflict', `The vault would reject the deposit: ${simulation.reason}`, {
      extras: { reason: simulation.reason },
    })
  const gasOrder = { userId, chainId: vault.chainId, gas: simulation.gas, fullExit: false }
  const chargeGas = await batches.charge(gasOrder)
  // The simulation is slower than reading the cash: read it again if something settled meanwhile.
  const latest = await ledger.balance(db, wallet)
  const cash = latest.version === firstCash.version ? firstCash : await readCash()
  const snapshotsOf = ({ cashUnits, version }: Cash): BalanceSnapshot[] => [
    { account: wallet, totalUnits: cashUnits, version },
  ]
  const observed = { snapshots: snapshotsOf(cash), reread: async () => snapshotsOf(await readCash()) }
  return { account, apy, chargeGas, observed }
}

/** New deposits are refused while the positions of the user and the chain disagree. */
async function assertNotFrozen(db: Queryable, userId: string, vaultRef: VaultRef): Promise<void> {
  const account = await earnAccountOf(db, userId, vaultRef)
  if (account?.state !== 'frozen') return
  const since = account.frozen_since?.toISOString() ?? null
  throw new Fault('trading_paused', `Deposits into the vault are paused: ${account.reason}`, {
    extras: { scope: 'earn', since, reason: account.reason },
  })
}

type Cash = { cashUnits: bigint; version: bigint }
type CashRequest = { wallet: AccountRef; account: string; usdc: string; amountUnits: bigint }

/**
 * A deposit that is executed on the chain and not settled yet counts twice for a moment: as held and as spent. Where
 * the chain has enough and only the holds are in the way, this waits a little for them to settle.
 */
async function awaitFreeCash(
  { db, ledger, vault, clock }: Pick<AdmissionDeps, 'db' | 'ledger' | 'vault' | 'clock'>,
  { wallet, account, usdc, amountUnits }: CashRequest,
): Promise<Cash> {
  const vaultRef = vaultRefOf(vault)
  const until = performance.now() + settleMsMax
  while (true) {
    // Read the version before the chain: a hold that settles in between invalidates the reading.
    const [{ heldUnits, version }, earnAccount] = await Promise.all([
      ledger.balance(db, wallet),
      earnAccountOf(db, wallet.owner, vaultRef),
    ])
    const { cashUnits, block } = await vault.account(account)
    if (block < minBlockFor(earnAccount, clock.now())) {
      if (performance.now() > until)
        throw new Fault('unavailable', 'The chain node lags behind the last settlement. Try again')
      await pause(settlePollMs)
      continue
    }
    const free = cashUnits > heldUnits ? cashUnits - heldUnits : 0n
    if (free >= amountUnits) return { cashUnits, version }
    const isHopeless = cashUnits < amountUnits || heldUnits === 0n
    if (isHopeless || performance.now() > until)
      throw insufficientBalance(usdcToken(usdc), {
        what: 'The deposit',
        requiredUnits: amountUnits,
        availableUnits: free,
      })
    await pause(settlePollMs)
  }
}

export const admitWithdraw = (deps: AdmissionDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    check: (input: EarnInput<'withdraw'>, { userId }) => checkWithdraw(deps, input, userId),
    fund: (withdrawal) => fundWithdrawal(deps, withdrawal),
    start({ action, account, amountText, positionId }, { plan, apy, chargeGas }) {
      const { vault, shareToken } = deps
      const data: VaultTaskData = {
        position_id: positionId,
        account,
        chain_id: vault.chainId,
        vault: vault.address,
        assets_units: plan.assetsUnits === null ? null : String(plan.assetsUnits),
        amount_usdc: amountText,
        shares_units: String(plan.sharesUnits),
        held_shares: String(plan.holdUnits),
        apy_at_action: apy,
      }
      return {
        first: 'prepare',
        deadlineMs: admissionMs,
        data,
        hold: {
          keyOf: (taskId) => moveKeys(taskId).shares,
          account: positionAccount(action.userId, shareAsset(vault), positionId),
          amountUnits: plan.holdUnits,
          reason: 'earn_withdraw',
          token: shareToken,
        },
        writes: chargeGas,
      }
    },
  })

async function checkWithdraw(
  deps: AdmissionDeps,
  { position_id, amount_usdc }: EarnInput<'withdraw'>,
  userId: string,
) {
  const { vault, usdc, limits } = deps
  const { id: positionId } = await positionOf(deps, userId, position_id)
  const amountText = amount_usdc ?? null
  const assetsUnits = amountText === null ? null : amountOf(amountText, limits.minWithdrawUsdc)
  const account = await deps.evmAddressOf(userId)
  const action: PlannedAction = {
    userId,
    operation: 'earn_withdraw',
    chainId: vault.chainId,
    tokens: [usdc],
    recipients: [account],
    usdMicros: 0n,
    exit: true,
  }
  return { action, account, amountText, assetsUnits, positionId }
}
type Withdrawal = Awaited<ReturnType<typeof checkWithdraw>>

async function fundWithdrawal(
  deps: AdmissionDeps,
  { action: { userId }, account, assetsUnits, positionId }: Withdrawal,
) {
  const { vault, batches, rates } = deps
  const fullExit = assetsUnits === null
  await batches.ready(vault.chainId, { fullExit })
  const plan = await planWithdrawal(deps, { userId, positionId, account, assetsUnits })
  const chargeGas = await batches.charge({ userId, chainId: vault.chainId, gas: plan.gas, fullExit })
  const { apy } = await rates.yield()
  return { plan, apy, chargeGas }
}
