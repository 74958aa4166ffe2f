// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Addresses} from "./shared/Addresses.sol";

/// Names the code of every deposit wallet.
contract DepositWalletBeacon {
    function implementation() external pure returns (address) {
        return Addresses.WALLET_IMPLEMENTATION;
    }
}
