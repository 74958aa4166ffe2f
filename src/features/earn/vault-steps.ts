import type { Ledger } from '#durable/ledger.ts'
import type { BatchPlan, BatchRules, BatchTaskData, Settlement } from '#engines/evm-batch/batch-rules.ts'
import type { Token } from '#kernel/chains.ts'
import type { Clock } from '#kernel/clock.ts'
import { fixedPointDecimals, fromFixedPoint, fromUnits, mulDiv, usdcDecimals } from '#kernel/money.ts'
import type { Move, TaskView, Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Receipt } from '#upstreams/evm/evm.ts'
import type { Flow, Vault } from '#upstreams/vault/vault.ts'
import { addChange, earnAccountOf, minBlockFor } from './earn-account.ts'
import { externalAccountOf, moveKeys, positionAccount, shareAsset } from './ledger-accounts.ts'

/** Plans the calls of deposits and withdrawals, and turns their events into ledger moves. */

type VaultStepsDeps = {
  db: Queryable
  vault: Vault
  usdc: string
  shareToken: Token
  ledger: Pick<Ledger, 'balance'>
  clock: Clock
  changed: (userId: string, chainId: string) => void
}
/** Task data of a deposit or withdrawal. */
export type VaultTaskData = BatchTaskData & {
  position_id: string
  account: string
  assets_units: string | null
  shares_units?: string
  held_shares?: string
  chain_id: string
  vault: string
  /** As the request named it. */
  amount_usdc: string | null
  apy_at_action: number | null
}
type VaultTask = TaskView<VaultTaskData>

export function vaultSteps({ db, vault, usdc, shareToken, ledger, clock, changed }: VaultStepsDeps) {
  const onFinal = (task: VaultTask) => changed(task.userId, vault.chainId)
  const shares = shareAsset(vault)

  const vaultRef = { chainId: vault.chainId, vault: vault.address.toLowerCase() }

  const minBlockOf = async ({ userId }: VaultTask) =>
    minBlockFor(await earnAccountOf(db, userId, vaultRef), clock.now())

  const recordChange = (task: VaultTask, receipt: Receipt, flow: Flow, sign: 1n | -1n) => {
    const { position_id: positionId } = task.data
    const sharesUnits = sign * flow.sharesUnits
    const change = { positionId, assetsUnits: flow.assetsUnits, sharesUnits, block: receipt.block }
    return async (tx: Tx) =>
      void (await addChange(tx, task.userId, vaultRef, { ...change, now: clock.now() }))
  }

  const resultOf = (task: VaultTask, flow: Flow, sign: 1n | -1n, txHash: string) => {
    const amount = fromUnits(flow.assetsUnits, usdcDecimals)
    return {
      position_id: task.data.position_id,
      amount_usdc: Number(amount),
      amount_usdc_decimal: amount,
      shares_delta: String(sign * flow.sharesUnits),
      share_price: paidPerShare(flow, shareToken.decimals),
      tx_hash: txHash,
    }
  }

  const deposit: BatchRules<VaultTaskData> = {
    onFinal,
    tokens: [shareToken],
    async plan(task): Promise<BatchPlan> {
      const { account, assets_units } = task.data
      const amountUnits = BigInt(assets_units ?? '0')
      return {
        chainId: vault.chainId,
        account,
        operation: 'earn_deposit',
        calls: vault.depositCalls(account, amountUnits),
        spends: [{ token: usdc, amountUnits, spender: vault.address }],
        tokens: [usdc],
        recipients: [vault.address],
        usdMicros: amountUnits,
        exit: false,
        minBlock: await minBlockOf(task),
      }
    },
    async settle(task, receipt): Promise<Settlement<VaultTaskData> | undefined> {
      const { account, position_id } = task.data
      const flow = vault.deposited(receipt.logs, account)
      if (!flow) return undefined
      const keys = moveKeys(task.id)
      const purchase: Move = {
        move: 'transfer',
        key: keys.shares,
        debit: externalAccountOf(shares),
        credit: positionAccount(task.userId, shares, position_id),
        amountUnits: flow.sharesUnits,
        reason: 'earn_deposit',
      }
      return {
        result: resultOf(task, flow, 1n, receipt.txHash),
        moves: [{ move: 'post', key: keys.cash, amountUnits: flow.assetsUnits }, purchase],
        writes: recordChange(task, receipt, flow, 1n),
      }
    },
  }

  const withdraw: BatchRules<VaultTaskData> = {
    onFinal,
    tokens: [shareToken],
    async plan(task): Promise<BatchPlan> {
      const { account, assets_units, shares_units } = task.data
      const calls =
        assets_units === null
          ? vault.redeemCalls(account, BigInt(shares_units ?? '0'))
          : vault.withdrawCalls(account, BigInt(assets_units))
      return {
        chainId: vault.chainId,
        account,
        operation: 'earn_withdraw',
        calls,
        spends: [],
        tokens: [usdc],
        recipients: [account],
        usdMicros: 0n,
        exit: true,
        fullExit: assets_units === null,
        minBlock: await minBlockOf(task),
      }
    },
    async settle(task, receipt): Promise<Settlement<VaultTaskData> | undefined> {
      const { account, held_shares, assets_units, position_id } = task.data
      const flow = vault.withdrawn(receipt.logs, account)
      if (!flow) return undefined
      // Posts the shares that were burnt, not those that were held: the rest stays in the position.
      const held = BigInt(held_shares ?? '0')
      const posted = flow.sharesUnits < held ? flow.sharesUnits : held
      const keys = moveKeys(task.id)
      const moves: Move[] = [{ move: 'post', key: keys.shares, amountUnits: posted }]
      // If the vault lost value, an amount can cost more shares than were held. Outside shares were never booked.
      if (assets_units !== null && flow.sharesUnits > held) {
        const shareAccount = positionAccount(task.userId, shares, position_id)
        const { availUnits } = await ledger.balance(db, shareAccount)
        const excess = flow.sharesUnits - held
        const amountUnits = excess < availUnits ? excess : availUnits
        const credit = externalAccountOf(shares)
        const move = { move: 'transfer' as const, key: keys.excess, debit: shareAccount, credit }
        if (amountUnits > 0n) moves.push({ ...move, amountUnits, reason: 'earn_withdraw' })
      }
      return {
        result: resultOf(task, flow, -1n, receipt.txHash),
        moves,
        writes: recordChange(task, receipt, flow, -1n),
      }
    },
  }

  return { deposit, withdraw }
}

/** The price paid, in USDC per whole share. */
export const paidPerShare = ({ assetsUnits, sharesUnits }: Flow, shareDecimals: number): string => {
  if (sharesUnits === 0n) return '0'
  const scale = 10n ** BigInt(shareDecimals + fixedPointDecimals - usdcDecimals)
  return fromFixedPoint(mulDiv(assetsUnits, scale, sharesUnits))
}
