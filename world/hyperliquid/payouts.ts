import { type PayoutSender, type Rpc, usdcAddress } from './bridge.ts'
import type { PayoutAttempt } from './state.ts'

/** Account 9 of the mnemonic that every development node funds. World money only. */
const mnemonic = 'test test test test test test test test test test test junk'

const mintAbi = [
  {
    type: 'function',
    name: 'mint',
    stateMutability: 'nonpayable',
    inputs: [
      { name: 'to', type: 'address' },
      { name: 'amount', type: 'uint256' },
    ],
    outputs: [],
  },
] as const

const transferAbi = [
  {
    type: 'function',
    name: 'transfer',
    stateMutability: 'nonpayable',
    inputs: [
      { name: 'to', type: 'address' },
      { name: 'amount', type: 'uint256' },
    ],
    outputs: [{ name: '', type: 'bool' }],
  },
] as const

type Receipt = { status: string } | null

const receiptPollsMax = 100
const receiptPollMs = 50
/** A reorganisation or a restarted node may have dropped a sent transaction. */
const resendEveryPolls = 20

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Pays out in new USDC. The bytes of a payout are signed once and sent again until they are mined: their nonce lets
 * them land once. Each payment also carries the number of its payout after the call data, which the token ignores.
 */
export const createPayoutSender = async (rpc: Rpc): Promise<PayoutSender> => {
  const { encodeFunctionData, keccak256 } = await import('viem')
  const { mnemonicToAccount } = await import('viem/accounts')
  const account = mnemonicToAccount(mnemonic, { addressIndex: 9 })
  const chainId = Number(await rpc('eth_chainId', []))
  const payoutTag = (id: number): string => id.toString(16).padStart(64, '0')
  const nextNonce = async (tag: 'pending' | 'latest') =>
    Number(await rpc('eth_getTransactionCount', [account.address, tag]))
  const isMined = async (hash: string): Promise<boolean> => {
    const receipt = (await rpc('eth_getTransactionReceipt', [hash])) as Receipt
    if (receipt && receipt.status !== '0x1') throw new Error(`Payout ${hash} failed`)
    return receipt !== null
  }

  const signOne = async (data: `0x${string}`, nonce: number) => {
    const gasPrice = BigInt(String(await rpc('eth_gasPrice', []))) * 2n
    const raw = await account.signTransaction({
      chainId,
      nonce,
      to: usdcAddress,
      data,
      gas: 200_000n,
      maxFeePerGas: gasPrice,
      maxPriorityFeePerGas: gasPrice / 2n,
      type: 'eip1559',
    })
    return { raw, hash: keccak256(raw), nonce }
  }

  /** The faucet of the world sends from the same account, so another transaction may have used the nonce. */
  const isReplaced = async ({ hash, nonce }: PayoutAttempt[number]): Promise<boolean> =>
    (await nextNonce('latest')) > nonce && !(await isMined(hash)) && (await nextNonce('latest')) > nonce

  const confirmTransaction = async (step: PayoutAttempt[number]): Promise<boolean> => {
    for (let tries = 0; tries < receiptPollsMax; tries += 1) {
      if (await isMined(step.hash)) return true
      if (await isReplaced(step)) return false
      // The node rejects bytes that it has already; they are looked up again.
      if (tries % resendEveryPolls === 0) await rpc('eth_sendRawTransaction', [step.raw]).catch(() => {})
      else await pause(receiptPollMs)
    }
    throw new Error(`Payout ${step.hash} was not mined`)
  }

  type Transaction = { hash: string; from: string; input: string }
  const findSent = async (id: number): Promise<string | undefined> => {
    const head = Number(await rpc('eth_blockNumber', []))
    for (let block = head; block > Math.max(0, head - 200); block -= 1) {
      const { transactions } = (await rpc('eth_getBlockByNumber', [`0x${block.toString(16)}`, true])) as {
        transactions: Transaction[]
      }
      const found = transactions.find(
        ({ from, input }) =>
          from.toLowerCase() === account.address.toLowerCase() &&
          input.startsWith('0xa9059cbb') &&
          input.endsWith(payoutTag(id)) &&
          input.length === 2 + 8 + 64 * 3,
      )
      if (found) return found.hash
    }
    return undefined
  }

  return {
    find: findSent,
    sign: async (id, to, amount) => {
      const nonce = await nextNonce('pending')
      const minted = encodeFunctionData({
        abi: mintAbi,
        functionName: 'mint',
        args: [account.address, amount],
      })
      const call = encodeFunctionData({
        abi: transferAbi,
        functionName: 'transfer',
        args: [to as `0x${string}`, amount],
      })
      return [await signOne(minted, nonce), await signOne(`${call}${payoutTag(id)}`, nonce + 1)]
    },
    confirm: async (attempt) => {
      for (const step of attempt) if (!(await confirmTransaction(step))) return false
      return true
    },
  }
}
