import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Abi, Hex } from 'viem'
import { type Address, contracts } from './addresses.ts'

/** The compiled contracts and where each is. Written by scripts/contracts.ts from ../contracts. */
const placed = {
  AutoRedeemer: 'autoRedeem',
  BinaryModule: 'binaryModule',
  CollateralAdapter: 'collateralAdapter',
  CollateralOfframp: 'offramp',
  CollateralOnramp: 'onramp',
  ConditionalTokens: 'conditionalTokens',
  DepositWallet: 'walletImplementation',
  DepositWalletBeacon: 'walletBeacon',
  DepositWalletFactory: 'walletFactory',
  DollarDesk: 'dollarDesk',
  DollarVault: 'vault',
  ExchangeV3: 'exchangeV3',
  MultiSend: 'multiSend',
  NegRiskAdapter: 'negRiskAdapter',
  NegRiskCollateralAdapter: 'negRiskCollateralAdapter',
  NegRiskExchange: 'negRiskExchange',
  NegRiskModule: 'negRiskModule',
  Oracle: 'oracle',
  PolymarketUsd: 'pusd',
  PositionManager: 'positionManager',
  PositionRouter: 'router',
  SafeWallet: 'safeImplementation',
  StandardExchange: 'standardExchange',
  WrappedCollateral: 'wrappedCollateral',
} as const satisfies Record<string, keyof typeof contracts>

export type ContractFile = keyof typeof placed
export const contractFiles = Object.keys(placed) as ContractFile[]

export const addressOfContract = (file: ContractFile): Address => contracts[placed[file]]

export const artifact = (file: ContractFile): { abi: Abi; runtime: Hex } => {
  const path = join(import.meta.dirname, '../artifacts', `${file}.json`)
  return JSON.parse(readFileSync(path, 'utf8')) as { abi: Abi; runtime: Hex }
}
