// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// Where the contracts are, as in ../../chain/addresses.ts. Their code is placed without constructors, so each knows the
/// others by constants.
library Addresses {
    address internal constant PUSD = 0xC011a7E12a19f7B1f670d46F03B03f3342E82DFB;
    address internal constant USDCE = 0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174;
    address internal constant USDC = 0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359;
    address internal constant ONRAMP = 0x93070a847efEf7F70739046A929D47a521F5B8ee;
    address internal constant OFFRAMP = 0x2957922Eb93258b93368531d39fAcCA3B4dC5854;
    address internal constant VAULT = 0x7001a00000000000000000000000000000000137;
    address internal constant DOLLAR_DESK = 0x7001A00000000000000000000000000000000138;

    address internal constant CONDITIONAL_TOKENS = 0x4D97DCd97eC945f40cF65F87097ACe5EA0476045;
    address internal constant WRAPPED_COLLATERAL = 0x3A3BD7bb9528E159577F7C2e685CC81A765002E2;
    address internal constant NEG_RISK_ADAPTER = 0xd91E80cF2E7be2e162c6513ceD06f1dD0dA35296;
    address internal constant COLLATERAL_ADAPTER = 0xAdA100Db00Ca00073811820692005400218FcE1f;
    address internal constant NEG_RISK_COLLATERAL_ADAPTER = 0xadA2005600Dec949baf300f4C6120000bDB6eAab;

    address internal constant POSITION_MANAGER = 0x006F54F7f9A22e0000CC2AB60031000000ae9fEF;
    address internal constant ROUTER = 0x12121212006e4CD160D18e3f00711DA5c3372600;
    address internal constant EXCHANGE_V3 = 0xe3333700cA9d93003F00f0F71f8515005F6c00Aa;
    address internal constant BINARY_MODULE = 0x1000008dD9001B968442c1000017eaE6E0dA00Ba;
    address internal constant NEG_RISK_MODULE = 0x200000900045e3B6259600682756002200028933;

    address internal constant WALLET_BEACON = 0x7A18EDfe055488A3128f01F563e5B479D92ffc3a;
    address internal constant WALLET_IMPLEMENTATION = 0x58CA52ebe0DadfdF531Cde7062e76746de4Db1eB;
    address internal constant ORACLE = 0x7001A0000000000000000000000000000000013A;
    address internal constant MULTI_SEND = 0xA238CBeb142c10Ef7Ad8442C6D1f9E89e07e7761;

    /// Accounts of the local world, whose keys derive from public labels.
    address internal constant OPERATOR = 0x8B2B6b05f00673c4586D22825888ad411672e492;
    address internal constant RESOLVER = 0x2db4486A198F293Bc1be4531d676433a631b6C02;
    address internal constant REDEEMER = 0xC69fF58966A850AE2008FCC3F5368753AA00a6f0;
    address internal constant ADMIN = 0x278a802a123E2C0D00302A22127ee669314Fb7Fc;
}
