import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Abi, Hex } from 'viem'

export type Artifact = { abi: Abi; bytecode: Hex; runtime: Hex; slots: Record<string, number> }
type OwnContract =
  | 'Depository'
  | 'Executor'
  | 'Faucet'
  | 'LifiDiamond'
  | 'LocalUsdc'
  | 'RelayApprovalProxy'
  | 'RelayRouter'
  | 'Till'
  | 'Token'
  | 'TokenDiamond'
  | 'TokenProxy'
  | 'TokenUups'
  | 'TradedToken'
  | 'Vault'
type UniswapArtifact = {
  abi: Abi
  evm: { bytecode: { object: string }; deployedBytecode: { object: string } }
}

const require = createRequire(import.meta.url)

/** Compiled by scripts/contracts.ts from the sources beside it. */
export const artifact = (name: OwnContract): Artifact =>
  JSON.parse(readFileSync(join(import.meta.dirname, 'artifacts', `${name}.json`), 'utf8')) as Artifact

/** Uniswap V2 is GPL: its code is loaded from the installed packages and none of it is stored here. */
export const uniswapArtifact = (file: string): Artifact => {
  const { abi, evm } = require(`@uniswap/${file}`) as UniswapArtifact
  return { abi, bytecode: `0x${evm.bytecode.object}`, runtime: `0x${evm.deployedBytecode.object}`, slots: {} }
}

/** viem contains the deployed Multicall3 but does not export it. */
export const multicall3Bytecode = (): Hex => {
  const constants = join(dirname(require.resolve('viem')), 'constants', 'contracts.js')
  return (require(constants) as { multicall3Bytecode: Hex }).multicall3Bytecode
}
