import { encodeFunctionData, parseAbi } from 'viem/utils'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { VenueWallet, WalletCall } from '#kernel/money/prediction-actions.ts'
import type { ChainReader, SetupStep, VenueRelayer, VenueSetup } from '#kernel/money/prediction-setup.ts'
import { contracts, type Hex, type Protocol } from './contracts.ts'
import { approveCall, tokenAbi } from './money-calls.ts'

/**
 * What an account needs before it can trade: a key, a wallet with code, and the permissions of each protocol.
 * https://docs.polymarket.com/trading/deposit-wallets
 */

type Spender = { name: string; address: Hex }
type Permissions = { protocol: Protocol; cash: Spender[]; sharesToken: Hex; shares: Spender[] }

const autoRedeem: Spender = { name: 'automatic redemption', address: contracts.autoRedeem }

const exchangesOfV1: Spender[] = [
  { name: 'exchange', address: contracts.standardExchange },
  { name: 'exchange of negative risk', address: contracts.negRiskExchange },
  { name: 'collateral adapter', address: contracts.collateralAdapter },
  { name: 'collateral adapter of negative risk', address: contracts.negRiskCollateralAdapter },
]
const exchangesOfV2: Spender[] = [
  { name: 'router', address: contracts.router },
  { name: 'exchange', address: contracts.exchangeV3 },
]

/** A table per protocol, because wallets that were set up for the first one lack those of the second. */
const permissions: readonly Permissions[] = [
  {
    protocol: 'v1',
    cash: exchangesOfV1,
    sharesToken: contracts.conditionalTokens,
    shares: [...exchangesOfV1, autoRedeem],
  },
  {
    protocol: 'v2',
    cash: exchangesOfV2,
    sharesToken: contracts.positionManager,
    shares: [...exchangesOfV2, autoRedeem],
  },
]

const uintMax = (1n << 256n) - 1n
/** The exchanges take pUSD out of an unlimited allowance, which some tokens count down. */
const allowanceMin = 1n << 255n
/** How long the relayer may wait until it sends a batch. */
const batchLifeSeconds = 600
/** A Safe and a deposit wallet have it alike. */
const walletAbi = parseAbi(['function nonce() view returns (uint256)'])

type Approval = {
  key: string
  label: string
  protocol: Protocol
  token: Hex
  spender: Hex
  read: Hex
  isEnough: (word: bigint) => boolean
  grant: WalletCall
}

const cashApproval = (protocol: Protocol, { name, address }: Spender, wallet: Hex): Approval => ({
  key: `approve_${protocol}_cash_${address.toLowerCase()}`,
  label: `Let the ${name} (${protocol}) take pUSD`,
  protocol,
  token: contracts.pusd,
  spender: address,
  read: encodeFunctionData({ abi: tokenAbi, functionName: 'allowance', args: [wallet, address] }),
  isEnough: (word) => word >= allowanceMin,
  grant: approveCall(contracts.pusd, address, uintMax),
})

const sharesApproval = (
  { protocol, sharesToken }: Permissions,
  { name, address }: Spender,
  wallet: Hex,
): Approval => ({
  key: `approve_${protocol}_shares_${address.toLowerCase()}`,
  label: `Let the ${name} (${protocol}) take shares`,
  protocol,
  token: sharesToken,
  spender: address,
  read: encodeFunctionData({ abi: tokenAbi, functionName: 'isApprovedForAll', args: [wallet, address] }),
  isEnough: (word) => word === 1n,
  grant: {
    to: sharesToken,
    value: 0n,
    data: encodeFunctionData({ abi: tokenAbi, functionName: 'setApprovalForAll', args: [address, true] }),
  },
})

const approvalsOf = (wallet: string, wanted: readonly string[]): Approval[] =>
  permissions
    .filter(({ protocol }) => wanted.includes(protocol))
    .flatMap((group) => [
      ...group.cash.map((spender) => cashApproval(group.protocol, spender, wallet as Hex)),
      ...group.shares.map((spender) => sharesApproval(group, spender, wallet as Hex)),
    ])

/** Reads the permissions that the chain has now; a wallet without code has none. */
async function readApprovals(approvals: readonly Approval[], reader: ChainReader): Promise<boolean[]> {
  const words = await reader.call(approvals.map(({ token, read }) => ({ to: token, data: read })))
  return approvals.map(({ isEnough }, index) => {
    const word = words[index]
    if (word === null || word === undefined || !/^0x[0-9a-f]{64}$/i.test(word))
      throw new Fault('unavailable', 'The chain did not answer for the permissions of the wallet')
    return isEnough(BigInt(word))
  })
}

export function createSetup({ relayer, clock }: { relayer: VenueRelayer; clock: Clock }): VenueSetup {
  return {
    relayer,
    async steps({ kind, wallet }, { hasKey, protocols, reader }) {
      const approvals = approvalsOf(wallet, protocols)
      const [code, isApproved] = await Promise.all([reader.code(wallet), readApprovals(approvals, reader)])
      const walletStep: SetupStep = {
        key: 'wallet',
        label: 'Create the wallet at the venue',
        protocol: null,
        approval: null,
        isDone: kind === 'eoa' || code !== '0x',
        act: { type: 'create_wallet' },
      }
      const keyStep: SetupStep = {
        key: 'key',
        label: 'Open a key at the venue',
        protocol: null,
        approval: null,
        isDone: hasKey,
        act: { type: 'sign_in' },
      }
      const approvalSteps = approvals.map(
        ({ key, label, protocol, token, spender, grant }, index): SetupStep => ({
          key,
          label,
          protocol,
          approval: { token, spender },
          isDone: isApproved[index] === true,
          act: { type: 'wallet_calls', calls: [grant] },
        }),
      )
      return [keyStep, walletStep, ...approvalSteps]
    },
    walletBatch({ kind, owner, wallet }: VenueWallet, calls, nonce) {
      if (kind === 'safe') return { type: 'safe_batch', owner, safe: wallet, nonce, calls }
      if (kind === 'eoa') throw new Fault('internal', 'an ordinary account sends no batches by the relayer')
      const deadlineSeconds = Math.floor(clock.now().getTime() / 1_000) + batchLifeSeconds
      return { type: 'wallet_batch', owner, wallet, nonce, deadlineSeconds, calls }
    },
    nonceCall: (wallet) => ({
      to: wallet,
      data: encodeFunctionData({ abi: walletAbi, functionName: 'nonce' }),
    }),
  }
}
