import type { Payer, Rpc } from './bridge.ts'
import { usdcAddress } from './bridge.ts'

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

type Receipt = { status: string; transactionHash: string } | null

const receiptTries = 100
const receiptEveryMs = 50

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const confirmed = async (rpc: Rpc, hash: string): Promise<void> => {
  for (let i = 0; i < receiptTries; i += 1) {
    const receipt = (await rpc('eth_getTransactionReceipt', [hash])) as Receipt
    if (receipt) {
      if (receipt.status !== '0x1') throw new Error(`Payout ${hash} failed`)
      return
    }
    await pause(receiptEveryMs)
  }
  throw new Error(`Payout ${hash} was not mined`)
}

/**
 * Pays out in fresh USDC. Each payout is marked by its number after the call data, which the token ignores, so
 * that a payout sent just before a crash is found on the chain and not sent again.
 */
export const openPayer = async (rpc: Rpc): Promise<Payer> => {
  const { encodeFunctionData } = await import('viem')
  const { mnemonicToAccount } = await import('viem/accounts')
  const account = mnemonicToAccount(mnemonic, { addressIndex: 9 })
  const chainId = Number(await rpc('eth_chainId', []))
  const mark = (id: number): string => id.toString(16).padStart(64, '0')

  const send = async (data: `0x${string}`): Promise<string> => {
    const nonce = Number(await rpc('eth_getTransactionCount', [account.address, 'pending']))
    const gasPrice = BigInt(String(await rpc('eth_gasPrice', []))) * 2n
    const signed = await account.signTransaction({
      chainId,
      nonce,
      to: usdcAddress,
      data,
      gas: 200_000n,
      maxFeePerGas: gasPrice,
      maxPriorityFeePerGas: gasPrice / 2n,
      type: 'eip1559',
    })
    const hash = String(await rpc('eth_sendRawTransaction', [signed]))
    await confirmed(rpc, hash)
    return hash
  }

  type Transaction = { hash: string; from: string; input: string }
  const sentBefore = async (id: number): Promise<string | undefined> => {
    const head = Number(await rpc('eth_blockNumber', []))
    for (let block = head; block > Math.max(0, head - 200); block -= 1) {
      const { transactions } = (await rpc('eth_getBlockByNumber', [`0x${block.toString(16)}`, true])) as {
        transactions: Transaction[]
      }
      const found = transactions.find(
        ({ from, input }) =>
          from.toLowerCase() === account.address.toLowerCase() &&
          input.startsWith('0xa9059cbb') &&
          input.endsWith(mark(id)) &&
          input.length === 2 + 8 + 64 * 3,
      )
      if (found) return found.hash
    }
    return undefined
  }

  return {
    find: sentBefore,
    pay: async (id, to, amount) => {
      await send(encodeFunctionData({ abi: mintAbi, functionName: 'mint', args: [account.address, amount] }))
      const call = encodeFunctionData({
        abi: transferAbi,
        functionName: 'transfer',
        args: [to as `0x${string}`, amount],
      })
      return send(`${call}${mark(id)}`)
    },
  }
}
