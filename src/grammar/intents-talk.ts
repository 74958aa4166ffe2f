import { any } from './feature-rules.ts'
import { framesOf } from './intent-frame.ts'

export const talkFrames = framesOf({ domain: 'meta', effect: 'none' }, [
  {
    intent: 'help',
    summary: 'What the chat can do, and what a term means',
    when: [any('HELP EXPLAIN QUESTION+FREEZE')],
    cues: { HELP: 2, EXPLAIN: 2 },
    not: any(
      'FREEZE+@asset SHOULD @indicator @amount+@asset APY PRICE+@asset CHATPRICE GAS FUNDING+@asset OVERVIEW HAVE LIMITS+MINE LIQUIDATION+MINE LIQUIDATION+@asset ADDRESS POSITION+MINE ORDERS+MINE SUPPORTED+@asset',
    ),
    readers: ['topic'],
    examples: ['what can you do', 'what does reduce-only mean', 'how do i bridge'],
  },
  {
    intent: 'greet',
    summary: 'A greeting',
    when: [any('GREET')],
    cues: { '@only-talk': 1 },
    not: any('@asset @amount'),
    talk: 'Hello. Ask for prices, balances, quotes or orders, or ask "what can you do".',
    examples: ['hello', 'gm'],
  },
  {
    intent: 'thanks',
    summary: 'Thanks and goodbyes',
    when: [any('THANKS')],
    cues: { '@only-talk': 1 },
    not: any('@asset @amount QUESTION+@word'),
    talk: 'You are welcome.',
    examples: ['thanks', 'bye'],
  },
])

export const refusalFrames = framesOf({ domain: 'not offered', effect: 'none' }, [
  {
    intent: 'transfer_out',
    summary: 'Money to somebody else',
    when: [any('MOVE WITHDRAW MOVE_ BRIDGE DEPOSIT PUT GIVE'), any('OTHERPERSON @address @stranger')],
    cues: { OTHERPERSON: 4, '@address': 4, '@stranger': 2 },
    not: any('SCAM'),
    examples: ['send my eth to 0x6982508145454ce325ddbe47a25d4ec3d2311933'],
    refusal:
      'This chat sends nothing to addresses of others. A person allows an address on the account page, and an app then sends to it: ask "who can i send to" for the list.',
  },
  {
    intent: 'news',
    summary: 'News, rumours and reasons',
    when: [any('NEWS')],
    cues: { NEWS: 5 },
    not: any('RESEARCH PNL WENT TASK ORDERS'),
    examples: ['any news on eth'],
    refusal:
      'There is no news source here, so a reason or a headline would be invented. Ask for prices, such as "how did eth move this week", for funding or for volumes.',
  },
  {
    intent: 'forecast',
    summary: 'Predictions of prices',
    when: [any('FORECAST'), any('@asset MARKET PRICE CHANGE')],
    cues: { FORECAST: 4 },
    not: any('LIQUIDATION HAVE STOP POLITE'),
    examples: ['will btc go up tomorrow'],
    refusal:
      'Nobody knows future prices, and none is invented here. Ask what is known, such as "how did eth move this month" or "what can i bet on".',
  },
  {
    intent: 'schedule',
    summary: 'Orders that repeat or run later',
    when: [
      any('@timed'),
      any(
        'BUY SELL SWAP BRIDGE MOVE LONG SHORT CLOSE DEPOSIT WITHDRAW SCHEDULE PUT SET OPEN PROTECT CANCEL FUND LOWER REDUCE BUY_ SELL_',
      ),
    ],
    cues: { '@timed': 5 },
    not: any('PERTX+QUESTION'),
    examples: ['every monday 9am buy $20 of btc'],
    refusal:
      'A chat does nothing at a later time or in a rhythm. A schedule does, with the same sentence: on the command line, portico schedules create. A limit order waits for a price, such as "buy fifty dollars of eth on base at two thousand dollars".',
  },
  {
    intent: 'image',
    summary: 'Pictures',
    when: [any('IMAGE')],
    cues: { IMAGE: 5 },
    not: any('@asset+CHART'),
    examples: ['draw me a bull'],
    refusal:
      'Pictures are not drawn in this chat. Prices are printed as words, such as "how did eth move this week".',
  },
  {
    intent: 'raise_limits',
    summary: 'Wider limits',
    when: [any('RAISE'), any('LIMITS DAILY PERTX APPROVALABOVE')],
    cues: { RAISE: 6 },
    not: any('LEVERAGE @asset'),
    examples: ['raise my daily limit to 10k'],
    refusal:
      'This chat can lower limits and never raises them. An app that may propose asks for a higher one, the person confirms it on a page of the gateway, and it takes effect after a cooling-off time. Ask "my limits" for those of now.',
  },
  {
    intent: 'unfreeze',
    summary: 'The kill switch off',
    when: [any('RESUME')],
    cues: { RESUME: 8 },
    examples: ['turn trading back on'],
    refusal:
      'This chat switches the kill switch on and never off. The person lifts it on the account page; "close all my positions" works meanwhile.',
  },
  {
    intent: 'approve',
    summary: 'Decisions about requests that wait',
    when: [any('APPROVE'), any('APPROVALS IT ALL TASK @id RECOMMENDATION')],
    cues: { APPROVE: 5 },
    not: any('QUESTION @usd'),
    examples: ['approve the pending request'],
    refusal:
      'Requests that wait are approved by a person, on the approvals page, and never by this chat. Ask "what is waiting for approval" to see them.',
  },
  {
    intent: 'secrets',
    summary: 'Keys and seed phrases',
    when: [any('SECRET')],
    cues: { SECRET: 8 },
    examples: ['show me my seed phrase'],
    refusal:
      'Keys never leave the gateway, and nobody can show them. Your addresses are public: ask "my wallet addresses".',
  },
  {
    intent: 'plans',
    summary: 'Plans of subscriptions',
    when: [any('PLANS')],
    cues: { PLANS: 5 },
    not: any('@asset'),
    examples: ['which plans are there'],
    refusal:
      'Plans are shown and paid for outside this chat: on the command line, portico subscriptions plans. Credits are sold in packs, too: ask "what do credit packs cost".',
  },
  {
    intent: 'fiat',
    summary: 'Cards and banks',
    when: [any('FIAT')],
    cues: { FIAT: 8 },
    examples: ['buy eth with my credit card'],
    refusal:
      'Cards and banks are not connected. Deposit by sending tokens to your own address: ask "my wallet addresses".',
  },
  {
    intent: 'other_products',
    summary: 'Products that are not offered',
    when: [any('NFT')],
    cues: { NFT: 9 },
    not: any('EARN'),
    examples: ['mint an nft'],
    refusal:
      'That is not offered here. Swaps, bridges, limit orders, stops, perpetuals, spot, prediction markets and the vault are: ask "what can you do" for examples.',
  },
])
