// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Addresses} from "./shared/Addresses.sol";
import {CollateralBridge} from "./shared/CollateralBridge.sol";
import {ConditionalExchange} from "./shared/ConditionalExchange.sol";

/// For markets of their own.
contract StandardExchange is ConditionalExchange {
    function _collateral() internal pure override returns (address) {
        return Addresses.USDCE;
    }

    function _adapter() internal pure override returns (CollateralBridge) {
        return CollateralBridge(Addresses.COLLATERAL_ADAPTER);
    }
}
