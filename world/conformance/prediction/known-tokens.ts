/** Tokens of markets of the live venue: over USDC.e, or over the wrapped collateral of events. */
import { contracts, type Hex } from '#world/polymarket/chain/addresses.ts'

type KnownToken = { collateral: Hex; conditionId: Hex; indexSet: bigint; id: bigint }

const { usdce, wrappedCollateral } = contracts
const standard = '0x3d69cc559693ee46ba58da16e43c4e75b8da67b99c2e9a9d2f72bb0222d0f137'

export const knownTokens: readonly KnownToken[] = [
  {
    collateral: usdce,
    conditionId: standard,
    indexSet: 1n,
    id: 45601394554497090173642354630373884477724604907691447337031201817815960365378n,
  },
  {
    collateral: usdce,
    conditionId: standard,
    indexSet: 2n,
    id: 102652665954921241745169157447280060113772926009745753029489061659654862632571n,
  },
  {
    collateral: wrappedCollateral,
    conditionId: '0xdd22472e552920b8438158ea7238bfadfa4f736aa4cee91a6b86c39ead110917',
    indexSet: 1n,
    id: 21742633143463906290569050155826241533067272736897614950488156847949938836455n,
  },
  {
    collateral: wrappedCollateral,
    conditionId: '0xd9b06e2fd9ddb7ab61c9e3d5d8e074c555802478bbf75145804ff709a4246f79',
    indexSet: 1n,
    id: 31974447302330162086995746309500877260929998201718217388109724292047967921664n,
  },
]
