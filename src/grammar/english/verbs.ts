/** Verbs in the form that may begin an order, and their inflected forms, which never begin one. */

export const verbs = {
  BUY: 'buy|buy me|purchase|grab|pick up|get me|acquire|ape|ape into|scoop up|snag|get some|load up on|spend|invest|accumulate|bag me|stack|market buy',
  SELL: 'sell|dump|offload|unload|get rid of|ditch|liquidate my|cash out|cash in|sell off|market sell',
  BET: 'bet|wager|gamble|place a bet|put a bet|make a bet|bet on',
  REDEEM: 'redeem|claim|collect',
  SWAP: 'swap|convert|exchange|trade|turn|flip|rotate|change',
  BRIDGE: 'bridge|bridge over',
  MOVE: 'move|send|transfer|shift|wire',
  PUT: 'put|throw|stick|park|place',
  LONG: 'long|go long|go long on',
  SHORT: 'short|go short|go short on',
  OPEN: 'open|enter',
  CLOSE: 'close|exit|flatten|close out|get out of|get me out of|unwind',
  REDUCE: 'reduce|trim|cut|decrease|scale out of|lighten|shrink|halve',
  HALVE: 'halve',
  CANCEL: 'cancel|delete|remove|forget|drop|scrap|void|take back|kill|pull|clear|withdraw my orders|revoke',
  SET: 'set|add|attach|create|leave|make|update|adjust|change|place|put',
  PROTECT: 'protect|guard|bracket|secure',
  DEPOSIT: 'deposit|stake|supply|put to work|lend|save|lock|park|add',
  WITHDRAW: 'withdraw|take out|pull|pull out|redeem|unstake|take|get back|move out|remove',
  FUND: 'fund|top up|load|finance|add funds|add margin|add collateral|add money',
  RECHARGE: 'recharge|refill|top up|reload',
  FREEZE:
    'freeze|halt|freeze everything|stop everything|stop all trading|stop trading|pause everything|pause trading|pause all trading|halt everything|halt trading|halt all trading|lock everything|lock my account|freeze my account|panic|emergency stop|shut everything down|shut it all down|stop all activity|block all trading|disable trading|disable all trading|kill switch on|kill switch now|turn on the kill switch|switch on the kill switch|hit the kill switch|activate the kill switch|engage the kill switch|pull the kill switch|press the kill switch|enable the kill switch|use the kill switch|kill switch',
  RESUME:
    'unfreeze|unpause|resume trading|resume|turn trading back on|turn trading on again|reenable trading|re enable trading|enable trading|lift the kill switch|lift the freeze|turn off the kill switch|switch off the kill switch|disable the kill switch|deactivate the kill switch|release the kill switch|kill switch off|start trading again|allow trading again',
  LOWER: 'lower|decrease|reduce|cap|tighten|restrict|limit|cut|set|drop|bring down|change|make',
  RAISE: 'raise|increase|lift|loosen|bump|bump up|extend|double|widen',
  APPROVE: 'approve|authorise|authorize|sign off on|approve all',
  SETUP:
    'set up|setup|prepare|enable|activate|get ready|get me ready|get me set up|provision|initialise|initialize|make ready|get started with',
  ASKAPPROVAL:
    'ask for approval|ask me before|require approval|require my approval|ask me above|ask me over|ask me for|ask before',
  GIVE: 'give me|i want|i need|want|need|get',
}

/** The inflected forms of the verbs, which are never an order. */
export const inflected = {
  BUY_: 'bought|buying|buys|purchased|purchasing|grabbed|acquired|spent|invested|investing|spending',
  SELL_: 'sold|selling|sells|dumped|dumping|dumps|offloaded|cashed out|cashing out|sale',
  SWAP_:
    'swapped|swapping|swaps|converted|converting|exchanged|exchanging|traded|turned|rotated|changed|flipped|conversion',
  BRIDGE_: 'bridged|bridging|bridges',
  MOVE_: 'moved|sent|transferred|sending|moving|transferring|transfers',
  LONG_: 'longed|longing|longs|going long|went long',
  SHORT_: 'shorted|shorting|shorts|going short|went short',
  OPEN_: 'opened|opening|entered|entering',
  CLOSE_: 'closed|closing|exited|exiting',
  CANCEL_: 'cancelled|canceled|cancelling|canceling|deleted|removed',
  DEPOSIT_: 'deposited|depositing|deposits|staked|staking|supplied|parked',
  WITHDRAW_: 'withdrew|withdrawn|withdrawing|withdrawal|withdrawals|pulled',
  SETUP_: 'ready for|set up for|activated|provisioned',
}
