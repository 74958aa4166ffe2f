import { encodeFunctionData, parseAbi } from 'viem/utils'
import { uuidv7 } from '#kernel/id.ts'
import type { Action, EvmCall, EvmIntent } from '#kernel/task/signer.ts'
import { approveData, transferData } from '#upstreams/evm/token-calls.ts'
import { acceptTask } from '../harness/accept-task.ts'
import { delegate, type IdentityApp, usdc, vault } from './identity-app.ts'

/** A user with wallets, and an intent of this user to deposit 25 USDC. */

const abi = parseAbi([
  'function deposit(uint256 assets, address receiver) returns (uint256)',
  'function withdraw(uint256 assets, address receiver, address owner) returns (uint256)',
  'function redeem(uint256 shares, address receiver, address owner) returns (uint256)',
])
type Hex = `0x${string}`

export const stranger = '0x2222222222222222222222222222222222222222'
export const units = 25_000_000n
const call = (to: string, data: string): EvmCall => ({ to, value: 0n, data })
export const approve = (spender = vault, amount = units, token = usdc) =>
  call(token, approveData(spender, amount))
export const transfer = (to: string, amount = units, token = usdc) => call(token, transferData(to, amount))
export const deposit = (receiver: string, amount = units, to = vault) =>
  call(to, encodeFunctionData({ abi, functionName: 'deposit', args: [amount, receiver as Hex] }))
export const withdraw = (receiver: string, owner: string, to = vault) =>
  call(
    to,
    encodeFunctionData({ abi, functionName: 'withdraw', args: [units, receiver as Hex, owner as Hex] }),
  )
export const redeem = (receiver: string, owner: string, to = vault) =>
  call(to, encodeFunctionData({ abi, functionName: 'redeem', args: [units, receiver as Hex, owner as Hex] }))

export const newTask = (app: Pick<IdentityApp, 'clock' | 'random'>) => uuidv7(app.clock.now(), app.random)

export function actionOf(app: IdentityApp, userId: string, change: Partial<Action> = {}): Action {
  return {
    userId,
    taskId: newTask(app),
    operation: 'earn_deposit',
    chainId: '8453',
    tokens: [usdc],
    recipients: [vault],
    usdMicros: units,
    exit: false,
    ...change,
  }
}

/** The same action, by a task that was accepted with it. */
export async function reserve(
  action: Action,
  { policy: { policy }, ...where }: Pick<IdentityApp, 'policy' | 'transactions' | 'clock'>,
): Promise<Action> {
  const spend = { action, check: () => policy.check(action) }
  return { ...action, taskId: await acceptTask(where, action.userId, spend) }
}

export function intentOf(
  app: IdentityApp,
  action: Action,
  own: string,
  calls = [approve(), deposit(own)],
): EvmIntent {
  const deadlineSeconds = Math.floor(app.clock.now().getTime() / 1000) + 600
  return {
    ...action,
    type: 'evm_batch',
    spends: [{ token: usdc, amountUnits: units, spender: vault }],
    batch: { chainId: '8453', account: own, delegate, calls, nonce: 1n << 64n, deadlineSeconds },
    delegation: { chainId: '8453', delegate, nonce: 0 },
  }
}
