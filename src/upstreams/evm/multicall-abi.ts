import { decodeFunctionResult, encodeFunctionData, parseAbi } from 'viem/utils'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import type { Hex } from './wire.ts'

/** Encodes calls and views for the contract Multicall3, and decodes their results. */

const multicallAbi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Call3Value { address target; bool allowFailure; uint256 value; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] returnData)',
  'function aggregate3Value(Call3Value[] calls) payable returns (Result[] returnData)',
  'function getEthBalance(address addr) view returns (uint256 balance)',
  'function getBlockNumber() view returns (uint256 blockNumber)',
  'function getCurrentBlockTimestamp() view returns (uint256 timestamp)',
])

export const blockNumberData: Hex = encodeFunctionData({ abi: multicallAbi, functionName: 'getBlockNumber' })
export const blockTimeData: Hex = encodeFunctionData({
  abi: multicallAbi,
  functionName: 'getCurrentBlockTimestamp',
})

export type View = { to: string; data: string }
export type ViewResult = { success: boolean; data: Hex }

export const viewsData = (views: readonly View[]): Hex =>
  encodeFunctionData({
    abi: multicallAbi,
    functionName: 'aggregate3',
    args: [views.map((view) => ({ target: view.to as Hex, allowFailure: true, callData: view.data as Hex }))],
  })

export const callsData = (calls: readonly EvmCall[], { allowFailure }: { allowFailure: boolean }): Hex =>
  encodeFunctionData({
    abi: multicallAbi,
    functionName: 'aggregate3Value',
    args: [
      calls.map((call) => ({
        target: call.to as Hex,
        allowFailure,
        value: call.value,
        callData: call.data as Hex,
      })),
    ],
  })

export const nativeBalanceData = (address: string): Hex =>
  encodeFunctionData({ abi: multicallAbi, functionName: 'getEthBalance', args: [address as Hex] })

export function resultsOf(data: Hex): ViewResult[] {
  if (data === '0x') throw new Fault('unavailable', 'The node ran no code for a call that needs some')
  const results = decodeFunctionResult({ abi: multicallAbi, functionName: 'aggregate3', data })
  return results.map(({ success, returnData }) => ({ success, data: returnData }))
}
