import {
  address,
  cloid,
  decimal,
  either,
  flag,
  list,
  natural,
  oneOf,
  type Rule,
  readType,
  record,
  rejectMalformed,
  text,
  whole,
} from './schema.ts'

const limit = record(['limit', record(['tif', oneOf('Gtc', 'Ioc', 'Alo', 'FrontendMarket')])])
const trigger = record([
  'trigger',
  record(['isMarket', flag], ['triggerPx', decimal], ['tpsl', oneOf('tp', 'sl')]),
])

const order = record(
  ['a', natural],
  ['b', flag],
  ['p', decimal],
  ['s', decimal],
  ['r', flag],
  ['t', either(limit, trigger)],
  ['c', cloid, 'optional'],
)

const grouping = either(oneOf('na', 'normalTpsl', 'positionTpsl'), record(['p', natural]))
const builder = record(['b', address], ['f', natural])
const oid = either(natural, cloid)
const type = (name: string) => ['type', oneOf(name)] as const

const l1Rules: Record<string, Rule> = {
  order: record(
    type('order'),
    ['orders', list(order)],
    ['grouping', grouping],
    ['builder', builder, 'optional'],
  ),
  cancel: record(
    type('cancel'),
    ['cancels', list(record(['a', natural], ['o', natural]))],
    ['f', oneOf(true), 'optional'],
  ),
  cancelByCloid: record(
    type('cancelByCloid'),
    ['cancels', list(record(['asset', natural], ['cloid', cloid]))],
    ['f', oneOf(true), 'optional'],
  ),
  modify: record(type('modify'), ['oid', oid], ['order', order], ['a', oneOf(true), 'optional']),
  batchModify: record(
    type('batchModify'),
    ['modifies', list(record(['oid', oid], ['order', order]))],
    ['a', oneOf(true), 'optional'],
  ),
  scheduleCancel: record(type('scheduleCancel'), ['time', natural, 'optional']),
  updateLeverage: record(
    type('updateLeverage'),
    ['asset', natural],
    ['isCross', flag],
    ['leverage', natural],
  ),
  updateIsolatedMargin: record(
    type('updateIsolatedMargin'),
    ['asset', natural],
    ['isBuy', flag],
    ['ntli', whole],
  ),
  topUpIsolatedOnlyMargin: record(type('topUpIsolatedOnlyMargin'), ['asset', natural], ['leverage', decimal]),
  agentSetAbstraction: record(type('agentSetAbstraction'), ['abstraction', oneOf('i', 'u', 'p')]),
  setReferrer: record(type('setReferrer'), ['code', text]),
  setDisplayName: record(type('setDisplayName'), ['displayName', text]),
  reserveRequestWeight: record(
    type('reserveRequestWeight'),
    ['weight', natural],
    ['destination', address, 'optional'],
  ),
  agentEnableDexAbstraction: record(type('agentEnableDexAbstraction')),
  createSubAccount: record(type('createSubAccount'), ['name', text]),
  subAccountModify: record(type('subAccountModify'), ['subAccountUser', address], ['name', text]),
  subAccountTransfer: record(
    type('subAccountTransfer'),
    ['subAccountUser', address],
    ['isDeposit', flag],
    ['usd', natural],
  ),
  subAccountSpotTransfer: record(
    type('subAccountSpotTransfer'),
    ['subAccountUser', address],
    ['isDeposit', flag],
    ['token', text],
    ['amount', decimal],
  ),
  twapOrder: record(type('twapOrder'), [
    'twap',
    record(['a', natural], ['b', flag], ['s', decimal], ['r', flag], ['m', natural], ['t', flag]),
  ]),
  twapCancel: record(type('twapCancel'), ['a', natural], ['t', natural]),
  noop: record(type('noop')),
}

export type TypedFields = readonly (readonly [name: string, kind: 'string' | 'bool' | 'uint64' | 'address'])[]

/** The typed data that a wallet shows and signs. `primary` is the name after `HyperliquidTransaction:`. */
export type UserSigned = { rule: Rule; primary: string; fields: TypedFields; nonce: 'nonce' | 'time' }

const chain = ['hyperliquidChain', 'string'] as const
const head = (name: string) =>
  [type(name), ['signatureChainId', text], ['hyperliquidChain', oneOf('Mainnet', 'Testnet')]] as const

const transferAction = (name: string, primary: string, names: readonly [string, Rule][]): UserSigned => ({
  rule: record(...head(name), ...names, ['time', natural]),
  primary,
  fields: [chain, ...names.map(([field]) => [field, 'string'] as const), ['time', 'uint64']],
  nonce: 'time',
})

/** Addresses inside messages are lower-cased before hashing, as upstream does: sign them in lower case. */
export const userSigned: Record<string, UserSigned> = {
  usdSend: transferAction('usdSend', 'UsdSend', [
    ['destination', address],
    ['amount', text],
  ]),
  spotSend: transferAction('spotSend', 'SpotSend', [
    ['destination', address],
    ['token', text],
    ['amount', text],
  ]),
  withdraw3: transferAction('withdraw3', 'Withdraw', [
    ['destination', address],
    ['amount', text],
  ]),
  usdClassTransfer: {
    rule: record(...head('usdClassTransfer'), ['amount', text], ['toPerp', flag], ['nonce', natural]),
    primary: 'UsdClassTransfer',
    fields: [chain, ['amount', 'string'], ['toPerp', 'bool'], ['nonce', 'uint64']],
    nonce: 'nonce',
  },
  approveAgent: {
    rule: record(
      ...head('approveAgent'),
      ['agentAddress', address],
      ['agentName', text, 'optional'],
      ['nonce', natural],
    ),
    primary: 'ApproveAgent',
    fields: [chain, ['agentAddress', 'address'], ['agentName', 'string'], ['nonce', 'uint64']],
    nonce: 'nonce',
  },
  approveBuilderFee: {
    rule: record(
      ...head('approveBuilderFee'),
      ['maxFeeRate', text],
      ['builder', address],
      ['nonce', natural],
    ),
    primary: 'ApproveBuilderFee',
    fields: [chain, ['maxFeeRate', 'string'], ['builder', 'address'], ['nonce', 'uint64']],
    nonce: 'nonce',
  },
  sendAsset: {
    rule: record(
      ...head('sendAsset'),
      ['destination', address],
      ['sourceDex', text],
      ['destinationDex', text],
      ['token', text],
      ['amount', text],
      ['fromSubAccount', text, 'optional'],
      ['nonce', natural],
    ),
    primary: 'SendAsset',
    fields: [
      chain,
      ['destination', 'string'],
      ['sourceDex', 'string'],
      ['destinationDex', 'string'],
      ['token', 'string'],
      ['amount', 'string'],
      ['fromSubAccount', 'string'],
      ['nonce', 'uint64'],
    ],
    nonce: 'nonce',
  },
  userDexAbstraction: {
    rule: record(...head('userDexAbstraction'), ['user', address], ['enabled', flag], ['nonce', natural]),
    primary: 'UserDexAbstraction',
    fields: [chain, ['user', 'address'], ['enabled', 'bool'], ['nonce', 'uint64']],
    nonce: 'nonce',
  },
  userSetAbstraction: {
    rule: record(
      ...head('userSetAbstraction'),
      ['user', address],
      ['abstraction', oneOf('disabled', 'unifiedAccount', 'portfolioMargin')],
      ['nonce', natural],
    ),
    primary: 'UserSetAbstraction',
    fields: [chain, ['user', 'address'], ['abstraction', 'string'], ['nonce', 'uint64']],
    nonce: 'nonce',
  },
}

export type Action = { type: string } & Record<string, unknown>

const rules = new Map<string, Rule>([
  ...Object.entries(l1Rules),
  ...Object.entries(userSigned).map(([name, { rule }]) => [name, rule] as const),
])

/** The action in canonical form: key order of the schema, decimals without zeros, addresses in lower case. */
export const canonicalAction = (value: unknown): Action => {
  const rule = rules.get(readType(value))
  return rule ? (rule(value) as Action) : rejectMalformed()
}
