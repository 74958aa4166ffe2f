import { keccak256, type Log, parseEventLogs, stringToHex, toEventSelector } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { artifact } from '#world/evm/artifact.ts'
import { lifiDiamond } from '#world/evm/chains.ts'
import type { Desk } from '#world/solver/evm-account.ts'
import type { Hex } from '#world/solver/request.ts'

type BridgeData = { transactionId: Hex; sendingAssetId: string; minAmount: bigint }

/** Deposits reach the filler through LI.FI's contract, whose event names no payer. */
export const lifiDesk: Desk = {
  account: privateKeyToAccount(keccak256(stringToHex('portico local world: lifi'))),
  inventoryId: keccak256(stringToHex('lifi inventory')),
  contract: { address: lifiDiamond, runtime: () => artifact('LifiDiamond').runtime },
  depositTopics: [
    toEventSelector(
      'LiFiTransferStarted((bytes32,string,string,address,address,address,uint256,uint256,bool,bool))',
    ),
  ],
  readDeposit: (log) => {
    const [event] = parseEventLogs({ abi: artifact('LifiDiamond').abi, logs: [log as unknown as Log] })
    if (event?.eventName !== 'LiFiTransferStarted') return undefined
    const { bridgeData } = event.args as unknown as { bridgeData: BridgeData }
    const { transactionId, sendingAssetId, minAmount } = bridgeData
    return { id: transactionId, token: sendingAssetId, amount: minAmount }
  },
}
