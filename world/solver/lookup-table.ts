import { depositoryProgram, depositoryState, depositoryVault } from '#world/solana/depository-accounts.ts'
import { addressBytes, findProgramAddress } from '#world/solana/keys.ts'
import { associatedTokenProgram, lookupTableProgram, memoProgram } from '#world/solana/programs.ts'
import type { PlannedInstruction } from '#world/solana/transaction-builder.ts'
import {
  requireChain,
  solanaChainId,
  solanaKey,
  systemProgram,
  tokenAccountOf,
  tokenProgramOf,
} from './chains.ts'
import { u64 } from './u64.ts'

/** What every deposit mentions beside its sender. */
const sharedAddresses = (): string[] => {
  const { tokens } = requireChain(solanaChainId)
  const ofTokens = tokens.flatMap(({ address }) => [
    address,
    tokenAccountOf(solanaKey.address, address),
    tokenAccountOf(depositoryVault, address),
    tokenProgramOf(address),
  ])
  const ofAll = [solanaKey.address, depositoryProgram, depositoryState, depositoryVault]
  const programs = [systemProgram, memoProgram, associatedTokenProgram]
  return [...new Set([...ofAll, ...programs, ...ofTokens])]
}

/** Creates a lookup table that makes transactions with deposits smaller, as those of Relay are. */
export const tableInstructions = (slot: number): { table: string; instructions: PlannedInstruction[] } => {
  const seeds = [addressBytes(solanaKey.address), u64(BigInt(slot))]
  const { address: table, bump } = findProgramAddress(seeds, lookupTableProgram)
  const accounts = [
    { address: table, writable: true },
    { address: solanaKey.address, signer: true },
    { address: solanaKey.address, signer: true, writable: true },
    { address: systemProgram },
  ]
  const addresses = sharedAddresses()
  const create = Buffer.concat([Uint8Array.of(0, 0, 0, 0), u64(BigInt(slot)), Uint8Array.of(bump)])
  const extend = Buffer.concat([
    Uint8Array.of(2, 0, 0, 0),
    u64(BigInt(addresses.length)),
    ...addresses.map(addressBytes),
  ])
  const instructions = [create, extend].map((data) => ({ program: lookupTableProgram, accounts, data }))
  return { table, instructions }
}
