import { token2022Program, tokenProgram } from './programs.ts'
import { edgeCaseMint, key, metadata, transferFee, type WorldToken, worldKey } from './token-definition.ts'

const permanentDelegate = () => ({ type: 12, data: key(worldKey.address) })
const transferHook = () => ({
  type: 14,
  data: Buffer.concat([key(worldKey.address), key(edgeCaseMint('hook program'))]),
})
const pausable = () => ({ type: 26, data: Buffer.concat([key(worldKey.address), Buffer.alloc(1)]) })
const nonTransferable = () => ({ type: 9, data: Buffer.alloc(0) })
const frozenByDefault = () => ({ type: 6, data: Uint8Array.of(2) })

type Extensions = NonNullable<WorldToken['extensions']>

/** A Token-2022 mint without supply whose only flaw are its extensions. */
const extended = (label: string, symbol: string, name: string, extensions: Extensions): WorldToken => ({
  mint: edgeCaseMint(label),
  symbol,
  name,
  decimals: 6,
  program: token2022Program,
  extensions: [...extensions, ...metadata(edgeCaseMint(label), name, symbol)],
  hasNoMintAuthority: true,
  isLaunched: true,
})

const supplyUnits = 10n ** 15n

/** Tokens of strangers: what a check of tokens has to distinguish. */
export const launchedTokens: readonly WorldToken[] = [
  {
    mint: edgeCaseMint('frozen'),
    symbol: 'FRZ',
    name: 'Freezable Trap',
    decimals: 6,
    program: tokenProgram,
    freezable: true,
    isLaunched: true,
  },
  {
    mint: edgeCaseMint('seized'),
    symbol: 'SEIZE',
    name: 'Permanent Delegate Trap',
    decimals: 6,
    program: token2022Program,
    extensions: [
      permanentDelegate(),
      ...metadata(edgeCaseMint('seized'), 'Permanent Delegate Trap', 'SEIZE'),
    ],
    isLaunched: true,
  },
  {
    mint: edgeCaseMint('taxed'),
    symbol: 'TAXED',
    name: 'Transfer Fee Trap',
    decimals: 6,
    program: token2022Program,
    extensions: [
      transferFee(500, 10n ** 15n),
      ...metadata(edgeCaseMint('taxed'), 'Transfer Fee Trap', 'TAXED'),
    ],
    isLaunched: true,
  },
  {
    mint: edgeCaseMint('plain'),
    symbol: 'PLAIN',
    name: 'Plain Mint',
    decimals: 6,
    program: tokenProgram,
    fixedSupplyUnits: supplyUnits,
    holders: 20,
    isLaunched: true,
  },
  {
    mint: edgeCaseMint('minted'),
    symbol: 'MINTY',
    name: 'Mint Authority Trap',
    decimals: 6,
    program: tokenProgram,
    isLaunched: true,
  },
  {
    mint: edgeCaseMint('whale'),
    symbol: 'WHALE',
    name: 'One Holder',
    decimals: 6,
    program: tokenProgram,
    fixedSupplyUnits: supplyUnits,
    isLaunched: true,
  },
  extended('hooked', 'HOOK', 'Transfer Hook Trap', [transferHook()]),
  extended('locked', 'LOCK', 'Non-transferable Trap', [nonTransferable()]),
  extended('paused', 'PAUSE', 'Pausable Trap', [pausable()]),
  extended('iced', 'ICED', 'Frozen By Default', [frozenByDefault()]),
]
